"""A stored plan with catalog and model at hand, to ask about what it has found."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from pathlib import Path

from planner.candidates.demand import of_model, targets
from planner.candidates.hardware import hardware_class
from planner.candidates.models import find_model
from planner.candidates.quality import QualityCase
from planner.candidates.weights_on_disk import with_weights_on_disk
from planner.catalog import Catalog, load_catalog
from planner.cost import Quotes, quote
from planner.errors import Fault, InputError
from planner.search.setup import quality_case
from planner.select.deploy import Scene
from planner.spec.archive import Rows
from planner.spec.offer import Offer
from planner.spec.record import PlanRecord
from planner.spec.record_file import asked_slo, read_record
from planner.spec.slo import Slo

OTHER_CATALOG = (
    "The catalog is not the one that the plan was made with, so what is computed anew may not agree"
    " with the plan; name the folder of that catalog with --catalog."
)


@dataclass(frozen=True)
class Stored:
    """A plan, and what it takes to ask the model about it.

    Attributes:
        record: The plan.
        slo: What it was asked.
        catalog: The catalog at hand; its prices are not the plan's.
        scene: Catalog, model, archive.
        case: What the quality loss depends on.
    """

    record: PlanRecord
    slo: Slo
    catalog: Catalog
    scene: Scene
    case: QualityCase

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of anything computed anew must know, in sentences."""
        return catalog_notes(self.record, self.catalog)

    def quotes(self) -> dict[str, Quotes]:
        """Return the plan's own prices by hardware class id, flagged ones among them."""
        sold = by_class(self.catalog, self.record.offers)
        return {key: quote(self.catalog, offers) for key, offers in sold.items()}


def open_plan(
    plan: PlanRecord | Path, catalog: Path | Catalog | None = None, folder: Path | None = None
) -> Stored:
    """Return a stored plan with its catalog and model.

    Args:
        plan: The plan, or its ``plan.json``.
        catalog: Catalog that it was made with; None = the shipped one.
        folder: Where a path to the model starts from; None = where ``plan.json`` lies.

    Raises:
        InputError: The plan or the catalog cannot be read, or the catalog or the disk lack what
            the plan names.
    """
    source = str(plan) if isinstance(plan, Path) else "plan"
    if folder is None:
        folder = plan.parent if isinstance(plan, Path) else Path()
    record = read_record(plan) if isinstance(plan, Path) else plan
    known = catalog if isinstance(catalog, Catalog) else load_catalog(catalog)
    check_catalog(known, record, source, currencies={offer.currency for offer in record.offers})
    known = replace(known, calibration=record.inputs.calibration)
    slo = asked_slo(record)
    _check_targets(record, slo, source)
    model = find_model(slo.model, folder if (folder / slo.model).exists() else Path())
    architecture = with_weights_on_disk(model, known.precisions).architecture
    slo = of_model(slo, architecture.max_context_tokens)
    case = quality_case(slo, known, architecture)
    return Stored(record, slo, known, Scene(known, architecture, record.archive), case)


def catalog_notes(record: PlanRecord, catalog: Catalog) -> tuple[str, ...]:
    """Return what a reader must know of the catalog at hand; nothing where it is the plan's own.

    Prices do not count: a plan holds its own.
    """
    inputs = record.inputs
    if inputs.basis_digest is None:
        same = inputs.catalog_digest == catalog.digest
    else:
        same = inputs.basis_digest == catalog.basis_digest
    return () if same else (OTHER_CATALOG,)


def by_class(catalog: Catalog, offers: Iterable[Offer]) -> dict[str, list[Offer]]:
    """Return the offers of each hardware class."""
    found: dict[str, list[Offer]] = {}
    for offer in offers:
        chip = catalog.accelerators[offer.accelerator]
        made = hardware_class(chip, offer.gpus, offer.link, offer.internode_gb_per_s)
        found.setdefault(made.id, []).append(offer)
    return found


def _check_targets(record: PlanRecord, slo: Slo, source: str) -> None:
    """Raise InputError unless the archive has figures for every target."""
    for archive in record.archive[:1]:
        known = {*Rows.model_fields, *archive.rows.further_ms}
        missing = [target.key for target in targets(slo) if target.key not in known]
        if missing:
            message = f"the plan has no figures for {', '.join(missing)}; plan again"
            raise InputError(source, [Fault("", "inputs.slo", message)])


def check_catalog(
    catalog: Catalog, record: PlanRecord, source: str, currencies: Set[str] = frozenset()
) -> None:
    """Raise InputError unless the catalog knows what the plan names.

    Args:
        catalog: The catalog at hand.
        record: The plan.
        source: Where it was read from.
        currencies: Those whose rates are needed.
    """
    generations = {g.id for engine in catalog.engines.values() for g in engine.generations}
    named = {
        *(archive.hardware.accelerator for archive in record.archive),
        *(offer.accelerator for offer in record.offers),
    }
    run = {margin.generation for archive in record.archive for margin in archive.margins}
    links = {archive.hardware.link for archive in record.archive}
    missing = [
        *sorted(named - set(catalog.accelerators)),
        *sorted(run - generations),
        *sorted(f"link '{name}'" for name in links - set(catalog.efficiency.links)),
        *sorted(f"a rate for {code}" for code in currencies - catalog.usd_per_unit.keys()),
    ]
    if missing:
        names = ", ".join(missing)
        message = (
            f"the catalog lacks {names}, which the plan names; name the folder of the catalog that"
            " the plan was made with by --catalog"
        )
        raise InputError(source, [message])
