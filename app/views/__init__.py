"""Pages: they draw, and ask app.services for everything else."""
