"""Price files of other programs and people -> offers; one row here per kind of file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planner.errors import Fault, InputError, suggestion
from planner.importers.gpuhunt import read_gpuhunt
from planner.importers.price_list import read_price_list
from planner.importers.price_rows import Imported, Known, PriceFile
from planner.importers.price_sheet import read_price_sheet
from planner.importers.skypilot import read_skypilot

PRICE_KINDS: Mapping[str, Callable[[PriceFile, Known], Imported]] = {
    "skypilot": read_skypilot,
    "gpuhunt": read_gpuhunt,
    "sheet": read_price_sheet,
    "price-list": read_price_list,
}


def read_prices(kind: str, file: PriceFile, known: Known) -> Imported:
    """Read a price file.

    Args:
        kind: A key of :data:`PRICE_KINDS`.
        file: The file and what it does not say itself.
        known: What the catalog knows.

    Raises:
        InputError: An unknown kind, or the file cannot be used as a whole.
    """
    reader = PRICE_KINDS.get(kind)
    if reader is None:
        known_kinds = ", ".join(PRICE_KINDS)
        message = f"'{kind}' is unknown{suggestion(kind, PRICE_KINDS)}; known are {known_kinds}"
        raise InputError("prices import", [Fault("", "kind", message)])
    return reader(file, known)
