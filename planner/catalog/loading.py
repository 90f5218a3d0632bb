"""Reading a catalog: every YAML file, then the prices; names that cross files are checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from planner.catalog.catalog import Catalog
from planner.catalog.locate import CatalogFiles, catalog_files, data_root
from planner.catalog.lookup import Names
from planner.catalog.offers import newest_seen, read_offers
from planner.errors import Fault, InputError
from planner.spec.accelerator import Accelerator
from planner.spec.base import Spec
from planner.spec.efficiency import Efficiency
from planner.spec.engine import Engine, Generation
from planner.spec.load import load_yaml
from planner.spec.offer import Currencies, Offer, Terms
from planner.spec.precision import Precisions
from planner.spec.speculation import Speculation

AnySpec = TypeVar("AnySpec", bound=Spec)
Entry = TypeVar("Entry", Accelerator, Engine)


def load_catalog(
    path: Path | None = None, *, prices: Sequence[Path] = (), overlays: Sequence[Path] = ()
) -> Catalog:
    """Read a catalog.

    Args:
        path: Catalog folder; None = the one that comes with the program.
        prices: Price files with the columns of ``offers.csv``, or the key columns and a price.
        overlays: Folders with the layout of a catalog, or any part of it: entries of the same
            name replace, new ones add, their ``offers.csv`` counts as a price file.

    Raises:
        InputError: A file cannot be used (all faults of the YAML files at once, then those of
            the price rows).
    """
    files = catalog_files(path, prices, overlays)
    reader = _Reader(files)
    accelerators = reader.folder("accelerators", Accelerator)
    engines = reader.folder("engines", Engine)
    precisions = reader.single("precisions.yaml", Precisions)
    speculation = reader.single("speculation.yaml", Speculation)
    efficiency = reader.single("efficiency.yaml", Efficiency)
    currencies = Currencies()
    if "currencies.yaml" in files.entries:
        currencies = reader.single("currencies.yaml", Currencies) or currencies
    terms = Terms()
    if "terms.yaml" in files.entries:
        terms = reader.single("terms.yaml", Terms) or terms
    if reader.errors or precisions is None or speculation is None or efficiency is None:
        raise reader.error()
    known = Names("accelerator", accelerators)
    _check_names(files.root, known, engines, (precisions, speculation, efficiency))
    offers = read_offers(files.offers, known, {"USD", *currencies.rates})
    return Catalog(
        accelerators=known.by_id,
        engines={engine.id: engine for engine in engines},
        precisions=precisions,
        speculation=speculation,
        efficiency=efficiency,
        offers=offers,
        exchange=currencies.rates,
        digest=files.digest(),
        basis_digest=files.basis_digest(),
        newest_seen=newest_seen(offer.seen for offer in offers),
        terms=terms,
    )


def laid_over(catalog: Catalog, offers: Sequence[Offer], prices: Sequence[Path]) -> Catalog:
    """Return the catalog with other offers, and price files laid over those.

    Args:
        catalog: Says which accelerators and currencies there are.
        offers: Take the place of the catalog's.
        prices: Price files, as for ``load_catalog``.

    Raises:
        InputError: A price file cannot be used.
    """
    known = Names("accelerator", catalog.accelerators.values())
    sold = read_offers(prices, known, catalog.usd_per_unit.keys(), base=offers)
    return replace(catalog, offers=sold, newest_seen=newest_seen(offer.seen for offer in sold))


class _Reader:
    """Reads the YAML files of a catalog and gathers their faults."""

    def __init__(self, files: CatalogFiles) -> None:
        self._files = files
        self.errors: list[InputError] = []

    def folder(self, name: str, spec: type[Entry]) -> list[Entry]:
        found = []
        for path in self._files.folder(name):
            entry = self._read(path, spec)
            if entry is not None and entry.id != path.stem:
                message = f"'{entry.id}' is not the file's name; rename one of them"
                self.errors.append(InputError(str(path), [Fault("", "id", message)]))
            elif entry is not None:
                found.append(entry)
        return found

    def single(self, name: str, spec: type[AnySpec]) -> AnySpec | None:
        if name not in self._files.entries:
            shipped = data_root() / "hardware_catalog"
            message = f"no such file; a catalog is whole, so begin with a copy of {shipped}"
            self.errors.append(InputError(str(self._files.root / name), [message]))
            return None
        return self._read(self._files.entries[name], spec)

    def error(self) -> InputError:
        """Return one error with the faults of all files."""
        if len(self.errors) == 1:
            return self.errors[0]
        root = self._files.root
        return InputError(str(root), _gathered(self.errors, root))

    def _read(self, path: Path, spec: type[AnySpec]) -> AnySpec | None:
        try:
            return load_yaml(path, spec)
        except InputError as error:
            self.errors.append(error)
            return None


def _gathered(errors: Iterable[InputError], root: Path) -> Iterator[Fault]:
    for error in errors:
        path = Path(error.source)
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) else error.source
        for fault in error.faults:
            yield Fault(f"{name}  {fault.where}".strip(), fault.key, fault.message)


def _check_names(
    root: Path,
    accelerators: Names[Accelerator],
    engines: Sequence[Engine],
    tables: tuple[Precisions, Speculation, Efficiency],
) -> None:
    """Raise InputError if a name is claimed twice, or one file names what another lacks."""
    precisions, speculation, efficiency = tables
    generations = Names("generation", [g for engine in engines for g in engine.generations])
    faults = [
        *accelerators.clashes,
        *Names("engine", engines).clashes,
        *generations.clashes,
        *Names("weight format", precisions.weights).clashes,
        *Names("KV-cache format", precisions.kv).clashes,
        *Names("speculation method", speculation.methods).clashes,
    ]
    for accelerator in accelerators:
        if accelerator.borrow and accelerator.borrow not in accelerators.by_id:
            message = accelerators.unknown(accelerator.borrow)
            faults.append(Fault(f"accelerators/{accelerator.id}.yaml", "borrow", message))
    for key, names, name in _fitted_names(efficiency, accelerators, generations):
        if name not in names.by_id:
            faults.append(Fault("efficiency.yaml", key, names.unknown(name)))
    if faults:
        raise InputError(str(root), faults)


def _fitted_names(
    efficiency: Efficiency, accelerators: Names[Accelerator], generations: Names[Generation]
) -> Iterator[tuple[str, Names[Any], str]]:
    """Yield (key, what the name must be one of, name) of every id that efficiency.yaml uses."""
    for name in efficiency.generations:
        yield "generations", generations, name
    for index, entry in enumerate(efficiency.accelerators):
        for name in entry.accelerators:
            yield f"accelerators[{index}].accelerators", accelerators, name
        for name in entry.generations:
            yield f"accelerators[{index}].generations", generations, name
    for index, error in enumerate(efficiency.errors):
        yield f"errors[{index}].generation", generations, error.generation
        yield f"errors[{index}].accelerator", accelerators, error.accelerator
