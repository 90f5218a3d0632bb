from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.catalog import Catalog, data_root, load_catalog

SHIPPED = data_root() / "hardware_catalog"


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A private copy of the shipped catalog."""
    return shutil.copytree(SHIPPED, tmp_path / "catalog")


@pytest.fixture
def edit(copied: Path) -> Callable[[str, str, str], None]:
    """Replace a text that occurs in a file of the copy."""

    def replace(name: str, old: str, new: str) -> None:
        path = copied / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    return replace


@pytest.fixture
def price_file(tmp_path: Path) -> Callable[..., Path]:
    """Write a price file from rows; its columns are those of the first row."""

    def write(*rows: dict[str, str]) -> Path:
        path = tmp_path / "prices.csv"
        with path.open("w", newline="", encoding="utf-8") as handle:
            writer = csv.DictWriter(handle, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return path

    return write
