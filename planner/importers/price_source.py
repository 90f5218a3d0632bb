"""Who sells what a price file lists, and when its prices were seen."""

from __future__ import annotations

import re
from collections.abc import Mapping

from planner.errors import Fault, InputError
from planner.importers.price_rows import Known, PriceFile
from planner.spec.base import first_day

PROVIDERS: Mapping[str, str] = {
    "amazon": "aws",
    "do": "digitalocean",
    "google": "gcp",
    "oracle": "oci",
    "lambdalabs": "lambda",
    "datacrunch": "verda",
    "crusoecloud": "crusoe",
}
"""Names that price files use for providers of the catalog."""
# fmt: off
SELLERS = frozenset({
    "aws", "azure", "cloudrift", "crusoe", "cudo", "digitalocean", "fluidstack", "gcp", "hotaisle",
    "hyperbolic", "hyperstack", "ibm", "jarvislabs", "lambda", "mithril", "nebius", "oci",
    "paperspace", "primeintellect", "runpod", "scp", "seeweb", "shadeform", "spheron", "vast",
    "verda", "vultr", "yotta",
})
# fmt: on
"""Providers that SkyPilot's and gpuhunt's catalogs have a file of."""
TABLE_NAMES = frozenset({"vms", "prices", "catalog"})
"""File names that tell nothing; SkyPilot keeps ``<provider>/vms.csv``."""

_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")


def provider_of(file: PriceFile, known: Known) -> str:
    """Return who sells: as given, else by the name of the file or its folder.

    Raises:
        InputError: The name does not tell.
    """
    if file.provider:
        given = file.provider.strip()
        return PROVIDERS.get(given.casefold(), given)
    stem = file.path.stem.casefold()
    name = file.path.resolve().parent.name.casefold() if stem in TABLE_NAMES else stem
    words = [PROVIDERS.get(word, word) for word in re.split(r"[^a-z0-9]+", name)]
    found = {word for word in words if word in known.providers | SELLERS}
    if len(found) == 1:
        return found.pop()
    if not found and len(words) == 1 and words[0] not in TABLE_NAMES:
        return words[0]
    message = "the file's name does not tell who sells; add --provider NAME"
    raise InputError(str(file.path), [Fault("", "provider", message)])


def seen_of(file: PriceFile, writer: str) -> str:
    """Return when the prices were seen.

    Args:
        file: The price file.
        writer: Who writes such files, for the message.

    Raises:
        InputError: Nobody says when, or it is no date.
    """
    if not file.seen:
        message = (
            f"{writer} carries no date; add --seen DATE, "
            "the day the file was made (for a repository: of its commit)"
        )
        raise InputError(str(file.path), [Fault("", "seen", message)])
    return checked_date(file.seen, str(file.path))


def checked_date(text: str, source: str) -> str:
    """Return a date of YYYY, YYYY-MM or YYYY-MM-DD.

    Raises:
        InputError: It has another form, or there is no such day.
    """
    try:
        if not _DATE.fullmatch(text):
            raise ValueError
        first_day(text)
    except ValueError:
        message = f"{ascii(text)[:40]} is no date; write YYYY-MM-DD, YYYY-MM or YYYY"
        raise InputError(source, [Fault("", "seen", message)]) from None
    return text


def stamp(file: PriceFile, seen: str, writer: str) -> dict[str, str]:
    """Return the fields of an offer that say where its price comes from."""
    basis = "stated on import" if file.seen else "stated in the file"
    return {"seen": seen, "seen_basis": basis, "source": f"{writer}, {file.path.name}"[:200]}
