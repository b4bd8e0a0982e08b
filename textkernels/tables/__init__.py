"""Tables of texts in csv, tsv, JSONL and Parquet files: as many rows out as in, or an error that names the line."""

from textkernels.tables.files import Table, check_place, check_writable, read_table, write_table, write_whole
from textkernels.tables.records import BadRow, Records

__all__ = ["BadRow", "Records", "Table", "check_place", "check_writable", "read_table", "write_table", "write_whole"]
