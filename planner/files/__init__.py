"""Reading YAML, JSON and CSV with line numbers and limits; writing whole files or nothing."""

from planner.files.csv_file import CsvRow, read_csv
from planner.files.disk import check_writable, digest, make_folder, write_bytes, write_text
from planner.files.document import Document, KeyPath, UnfitValuesError, dotted, key_path
from planner.files.json_file import parse_json, read_json, repeats_a_key
from planner.files.yaml_file import dump_yaml, parse_yaml, read_yaml

__all__ = [
    "CsvRow",
    "Document",
    "KeyPath",
    "UnfitValuesError",
    "check_writable",
    "digest",
    "dotted",
    "dump_yaml",
    "key_path",
    "make_folder",
    "parse_json",
    "parse_yaml",
    "read_csv",
    "read_json",
    "read_yaml",
    "repeats_a_key",
    "write_bytes",
    "write_text",
]
