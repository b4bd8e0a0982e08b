"""`python -m textkernels` is the `textkernels` command."""

from textkernels.cli import main

if __name__ == "__main__":
    main()
