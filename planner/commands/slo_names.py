"""Names in slo.yaml that the catalog must know: all the unknown ones at once, with their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from planner.candidates.models import Model, find_model
from planner.catalog import Catalog
from planner.errors import Fault, InputError, suggestion
from planner.files import Document, KeyPath, dotted
from planner.spec.slo import Slo

OFF = "off"
KV = "kv-"

LookUp = Callable[[str], object]


def known_model(asked: Slo, catalog: Catalog, folder: Path, document: Document | None) -> Model:
    """Return the model of an SLO; checks every other name on the way.

    Args:
        asked: What slo.yaml says.
        catalog: What its names must be in.
        folder: Where a path to a model starts from.
        document: The file, for lines; None = the SLO did not come from one.

    Raises:
        InputError: Every name that is unknown, with the nearest known one.
    """
    faults = [
        _fault(document, path, message)
        for path, name, look_up in _names(asked, catalog)
        if (message := _refusal(look_up, name))
    ]
    try:
        model = find_model(asked.model, folder)
    except InputError as error:
        if error.source != "model":
            raise
        faults = [*(_fault(document, ("model",), f.message) for f in error.faults), *faults]
    if faults:
        faults.sort(key=lambda fault: int(fault.where.removeprefix("line ") or 0))
        raise InputError(document.source if document else "slo", faults)
    return model


def _fault(document: Document | None, path: KeyPath, message: str) -> Fault:
    return document.fault(path, message) if document else Fault("", dotted(path), message)


def _refusal(look_up: LookUp, name: str) -> str:
    """Return what is wrong with a name; empty = nothing."""
    try:
        look_up(name)
    except InputError as error:
        return error.faults[0].message
    return ""


def _names(asked: Slo, catalog: Catalog) -> Iterator[tuple[KeyPath, str, LookUp]]:
    def form(name: str) -> object:
        if name.casefold().startswith(KV):
            return catalog.kv_format(name[len(KV) :])
        return catalog.weight_format(name)

    def method(name: str) -> object:
        return None if name.casefold() == OFF else catalog.speculation_method(name)

    purchase, drafts = asked.purchase, asked.speculation
    providers = _among(offer.provider for offer in catalog.offers)
    regions = _among(offer.region for offer in catalog.offers)
    lists: tuple[tuple[KeyPath, Iterable[str], LookUp], ...] = (
        (("engines",), asked.engines, catalog.engine),
        (("purchase", "accelerators"), purchase.accelerators, catalog.accelerator),
        (("purchase", "providers"), purchase.providers, providers),
        (("purchase", "regions"), purchase.regions, regions),
        (("quality", "allow"), asked.quality.allow, form),
        (("speculation", "methods"), drafts.methods or (), method),
    )
    for path, names, look_up in lists:
        yield from (((*path, number), name, look_up) for number, name in enumerate(names))
    yield from ((("quality", "measured", name), name, form) for name in asked.quality.measured)
    for name in drafts.acceptance:
        yield ("speculation", "acceptance", name), name, method


def _among(values: Iterable[str]) -> LookUp:
    known = set(values)
    folded = {value.casefold() for value in known}

    def look_up(name: str) -> None:
        if name.casefold() not in folded:
            hint = suggestion(name, known) or "; no offer of the catalog has it"
            raise InputError("offers", [f"'{name}' is unknown{hint}"])

    return look_up
