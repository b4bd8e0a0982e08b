"""Experiments that end in a report: the paper's tables and comparisons of embeddings.

| module | what |
|---|---|
| `table3` | the protocol of the paper's Table 3 from data to result |
| `table3_records`, `table3_report` | what is written of it |
| `table4` | the protocol of Table 4: `table4_rows`, `table4_candidates`, `table4_embedding`; `workload`: its cost |
| `table4_records`, `table4_report` | what is written of it |
| `encoded`, `pair_tiles`, `pooled_table`, `token_stacks` | token work that many networks share, kept tile by tile |
| `labelled` | texts with classes as codes, and a checksum of the rows in use |
| `candidates` | the networks that are tried in every class |
| `pooled` | token work done once for all candidates that share it |
| `validation`, `refit` | one candidate in float32 on held-out rows; a winner in float64 on the test set |
| `finished` | results on disk by content, so that nothing is computed twice |
| `intervals`, `measure`, `provenance` | certainty, cost and origin of every number |
| `compare` | a comparison of embeddings: `splits`, `stacked` documents, `cells`, `baselines`, failures and restarts |
| `scores`, `paired`, `ranking`, `contests` | metrics, differences, order, sentences; what is compared with what |
| `compare_report`, `compare_records`, `compare_figures`, `comparison_plot` | its report |
| `report`, `plot` | report.md, report.html, results.csv, results.json, and the figures in them |
"""
