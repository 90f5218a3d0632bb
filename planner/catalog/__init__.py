"""Our own files -> specs: accelerators, engines, formats, fitted numbers, prices, known models."""

from planner.catalog.catalog import Catalog, version_numbers
from planner.catalog.loading import laid_over, load_catalog
from planner.catalog.locate import data_root

__all__ = ["Catalog", "data_root", "laid_over", "load_catalog", "version_numbers"]
