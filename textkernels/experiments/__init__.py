"""Experiments that end in a report: the paper's tables and comparisons of embeddings.

| module | what |
|---|---|
| `table3` | the protocol of the paper's Table 3 from data to result |
| `candidates` | the networks that are tried in every class |
| `pooled` | token work done once for all candidates that share it |
| `validation`, `refit` | one candidate in float32 on held-out rows; a winner in float64 on the test set |
| `finished` | results on disk by content, so that nothing is computed twice |
| `intervals`, `measure`, `provenance` | certainty, cost and origin of every number |
| `report`, `plot` | report.md, report.html, results.csv, results.json, and the figures in them |
"""
