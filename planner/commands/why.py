"""Why a deployment that a person names is not on the front of a stored plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from planner.candidates.acceptance import acceptance
from planner.candidates.hardware import HardwareClass, hardware_class
from planner.candidates.points import PointResolver, Rejected, Resolved
from planner.catalog import Catalog
from planner.commands.points_file import read_points
from planner.commands.stored import Stored, open_plan
from planner.cost_owned import draw_of, use_of
from planner.errors import Fault, InputError
from planner.select.answers import answers
from planner.select.front import front
from planner.select.named import Named
from planner.select.options import Shop
from planner.select.why import Market, WhyNot, why_not
from planner.spec.archive import Hardware
from planner.spec.point import Point
from planner.spec.record import PlanRecord

LOAD = {"kind": "closed_loop", "concurrency": "1", "rate_per_s": ""}
"""The plan brings its own load."""


def why(
    plan: PlanRecord | Path, file: Path, *, catalog: Path | Catalog | None = None
) -> tuple[WhyNot, ...]:
    """Return why deployments are not on the front of a plan, and what beats them.

    Args:
        plan: The plan, or its ``plan.json``.
        file: YAML or CSV with deployments as ``plan score`` reads them; model and load are the
            plan's. Without ``replicas`` a deployment gets as many as the load needs.
        catalog: Catalog that the plan was made with; None = the shipped one.

    Raises:
        InputError: A file cannot be used; every row that is no deployment is named.
    """
    stored = open_plan(plan, catalog)
    slo, scene = stored.slo, stored.scene
    every = stored.quotes()
    chosen = front(answers(scene.archives), scene.archives, every, slo)
    shop = Shop(every, stored.record.offers)
    market = Market(scene, slo, stored.case, shop, chosen, stored.record.options)
    points = _points(stored, file)
    found = (_one(stored, market, name, point) for name, point in points.items())
    return tuple(replace(answer, notes=stored.notes) for answer in found)


def _points(stored: Stored, file: Path) -> dict[str, Point]:
    points: dict[str, Point] = {}
    faults: list[Fault] = []
    model = stored.slo.model
    for number, row in enumerate(read_points(file), start=1):
        name = row.values.get("id") or f"row {number}"
        if row.values.get("model", model).casefold() != model.casefold():
            message = f"the plan is for {model}; remove this key, or plan for the other model"
            faults.append(row.fault("model", message))
            continue
        try:
            points[name] = row.point({"model": model, **LOAD})
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(str(file), faults)
    return points


def _one(stored: Stored, market: Market, name: str, point: Point) -> WhyNot:
    if not point.accelerator:
        return WhyNot(name, "cannot run", ("no accelerator; name one",))
    resolved = PointResolver(stored.catalog).resolve(point)
    if isinstance(resolved, Rejected):
        return WhyNot(name, "cannot run", (resolved.reason,))
    return why_not(market, _named(stored, name, resolved), _classes(stored, resolved))


def _named(stored: Stored, name: str, r: Resolved) -> Named:
    point, generation, method = r.point, r.stack.generation, r.method
    own = stored.slo.speculation.acceptance
    given = {stored.catalog.speculation_method(key).id: value for key, value in own.items()}
    accepted = (0.0, 1.0)
    if method is not None and point.acceptance is not None:
        accepted = (point.acceptance, 1.0)
    elif method is not None and method.id in given:
        accepted = (given[method.id].c1, given[method.id].d)
    elif method is not None:
        known = acceptance(method, stored.slo.task, stored.scene.architecture)
        accepted = (known.c1, known.d)
    return Named(
        name=name,
        engine=stored.catalog.engine(point.engine).id,
        generation=generation.id,
        weights=r.weights.id,
        kv=r.kv.id,
        speculation="off" if method is None else method.id,
        tp=point.tp,
        pp=point.pp,
        dp=point.dp,
        draft_tokens=0 if method is None else point.draft_tokens,
        acceptance=accepted,
        max_num_seqs=point.max_num_seqs or generation.max_num_seqs,
        token_budget=point.token_budget or generation.token_budget,
        replicas=point.copies if point.replicas or point.n_gpus else None,
    )


def _classes(stored: Stored, r: Resolved) -> tuple[Hardware, ...]:
    """Return the classes with the deployment's accelerator that the plan has prices for."""
    found: dict[str, HardwareClass] = {}
    for offer in stored.record.offers:
        if offer.accelerator == r.accelerator.id:
            made = hardware_class(r.accelerator, offer.gpus, offer.link, offer.internode_gb_per_s)
            found.setdefault(made.id, made)
    known: Mapping[str, Hardware] = {a.hardware.id: a.hardware for a in stored.record.archive}
    return tuple(known.get(key) or _hardware(stored, made) for key, made in found.items())


def _hardware(stored: Stored, made: HardwareClass) -> Hardware:
    moe = use_of(stored.slo, stored.scene.architecture).moe
    return Hardware(
        id=made.id,
        accelerator=made.accelerator.id,
        name=made.accelerator.name,
        gpus_per_instance=made.gpus,
        link=made.link_kind,
        link_domain=max(made.link_domain, 1),
        link_gb_per_s=made.link_gb_per_s,
        internode_gb_per_s=made.internode_gb_per_s,
        memory_gib=made.accelerator.memory_gib,
        draw=draw_of(made.accelerator, stored.catalog.terms.power, moe=moe),
    )
