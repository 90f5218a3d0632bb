"""Names in slo.yaml that the catalog must know: all the unknown ones at once, with their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from planner.candidates.models import Model, find_model
from planner.catalog import Catalog
from planner.errors import Fault, InputError, suggestion
from planner.files import Document, KeyPath, dotted
from planner.importers.hub import PREFIX
from planner.spec.slo import Slo

MODEL = "model"
"""Key of the model, and the source of an error that names one nobody knows."""
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
    faults = _unknown(asked.model_dump(by_alias=True), catalog, document)
    try:
        model = find_model(asked.model, folder)
    except InputError as error:
        if error.source != MODEL:
            raise
        faults = [*(_fault(document, (MODEL,), f.message) for f in error.faults), *faults]
    if faults:
        faults.sort(key=lambda fault: int(fault.where.removeprefix("line ") or 0))
        raise InputError(document.source if document else "slo", faults)
    return model


def unknown_names(document: Document, catalog: Catalog, folder: Path) -> list[Fault]:
    """Return the unknown names in an slo.yaml that is no sound one; other faults are passed over.

    A model on the hub is not looked for.
    """
    faults = _unknown(document.data, catalog, document)
    for path, name in _texts(document.data, (MODEL,)):
        try:
            _ = None if name.startswith(PREFIX) else find_model(name, folder)
        except InputError as error:
            if error.source == MODEL:
                faults += [_fault(document, path, fault.message) for fault in error.faults]
    return faults


def _unknown(data: object, catalog: Catalog, document: Document | None) -> list[Fault]:
    return [
        _fault(document, path, message)
        for path, name, look_up in _names(data, catalog)
        if (message := _refusal(look_up, name))
    ]


def _fault(document: Document | None, path: KeyPath, message: str) -> Fault:
    return document.fault(path, message) if document else Fault("", dotted(path), message)


def _refusal(look_up: LookUp, name: str) -> str:
    """Return what is wrong with a name; empty = nothing."""
    try:
        look_up(name)
    except InputError as error:
        return error.faults[0].message
    return ""


def _names(data: object, catalog: Catalog) -> Iterator[tuple[KeyPath, str, LookUp]]:
    """Yield the names in the data of an slo.yaml, where each stands, and what must know it."""

    def form(name: str) -> object:
        if name.casefold().startswith(KV):
            return catalog.kv_format(name[len(KV) :])
        return catalog.weight_format(name)

    def method(name: str) -> object:
        return None if name.casefold() == OFF else catalog.speculation_method(name)

    places: tuple[tuple[KeyPath, LookUp], ...] = (
        (("engines",), catalog.engine),
        (("purchase", "accelerators"), catalog.accelerator),
        (("purchase", "providers"), _among(offer.provider for offer in catalog.offers)),
        (("purchase", "regions"), _among(offer.region for offer in catalog.offers)),
        (("quality", "allow"), form),
        (("speculation", "methods"), method),
        (("quality", "measured"), form),
        (("speculation", "acceptance"), method),
    )
    for place, look_up in places:
        yield from ((path, name, look_up) for path, name in _texts(data, place))


def _texts(data: object, place: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yield the text at a place, or each that its list or the keys of its block hold."""
    for key in place:
        data = data.get(key) if isinstance(data, Mapping) else None
    found: Iterable[tuple[KeyPath, object]] = ()
    if isinstance(data, str):
        found = ((place, data),)
    elif isinstance(data, tuple):
        found = (((*place, number), value) for number, value in enumerate(data))
    elif isinstance(data, Mapping):
        found = (((*place, key), key) for key in data)
    yield from ((path, text) for path, text in found if isinstance(text, str))


def _among(values: Iterable[str]) -> LookUp:
    known = set(values)
    folded = {value.casefold() for value in known}

    def look_up(name: str) -> None:
        if name.casefold() not in folded:
            hint = suggestion(name, known) or "; no offer of the catalog has it"
            raise InputError("offers", [f"'{name}' is unknown{hint}"])

    return look_up
