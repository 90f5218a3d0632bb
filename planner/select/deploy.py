"""Rows of the record -> Candidates, to ask the model more about single deployments."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.candidates.choices import Choices, Tables, build
from planner.candidates.efficiency import Stack, global_parameters
from planner.candidates.hardware import HardwareClass
from planner.catalog import Catalog
from planner.model.arrays import Candidates, Floats, Indices, Parameters
from planner.spec.architecture import Architecture
from planner.spec.archive import ClassArchive, Hardware
from planner.spec.speculation import SpeculationMethod

OFF = "off"
NUMBERS = {
    "tp": "tp",
    "pp": "pp",
    "dp": "dp",
    "replicas": "replicas",
    "max_sequences": "max_num_seqs",
    "token_budget": "token_budget",
    "draft_tokens": "draft_tokens",
    "accept_first": "accept_first",
    "accept_decay": "accept_decay",
}
"""Field of Choices -> column of the record."""


@dataclass(frozen=True)
class Scene:
    """What single deployments are asked about: the catalog, the model and the archive."""

    catalog: Catalog
    architecture: Architecture
    archives: tuple[ClassArchive, ...]

    @property
    def parameters(self) -> Parameters:
        """Fitted values of all candidates."""
        return global_parameters(self.catalog.efficiency)

    def value(self, place: int, row: int, name: str) -> Any:
        """Return one value of the archive."""
        return getattr(self.archives[place].rows, name)[row]

    def candidates(self, places: Indices, rows: Indices) -> Candidates:
        """Return the columns of the named rows, (n,)."""
        at = list(zip(places.tolist(), rows.tolist(), strict=True))

        def column(name: str) -> list[Any]:
            return [self.value(place, row, name) for place, row in at]

        catalog = self.catalog
        stacks, stack = _interned([*zip(column("engine"), column("generation"), strict=True)])
        weights, weight = _interned(column("weights"))
        kvs, kv = _interned(column("kv"))
        methods, method = _interned([OFF, *column("speculation")])
        tables = Tables(
            calibration=catalog.calibration,
            efficiency=catalog.efficiency,
            architectures=(self.architecture,),
            hardware=tuple(hardware_of(catalog, a.hardware) for a in self.archives),
            stacks=tuple(Stack(catalog.generation(*names)) for names in stacks),
            weights=tuple(catalog.weight_format(name) for name in weights),
            kv=tuple(catalog.kv_format(name) for name in kvs),
            methods=tuple(_method(catalog, name) for name in methods),
        )
        zero = np.zeros(len(at))
        return build(
            tables,
            Choices(
                architecture=zero.astype(np.intp),
                hardware=places,
                stack=stack,
                weights=weight,
                kv=kv,
                method=method[1:],
                poll_steps=zero,
                batch_wait_steps=zero,
                **{field: np.array(column(name), dtype=float) for field, name in NUMBERS.items()},
            ),
        )


def hardware_of(catalog: Catalog, hardware: Hardware) -> HardwareClass:
    """Return the hardware class that a record names."""
    return HardwareClass(
        accelerator=catalog.accelerators[hardware.accelerator],
        gpus=hardware.gpus_per_instance,
        link_kind=hardware.link,
        link_gb_per_s=hardware.link_gb_per_s,
        link_domain=hardware.link_domain,
        internode_gb_per_s=hardware.internode_gb_per_s,
    )


def repeat(c: Candidates, replicas: Floats) -> Candidates:
    """Return one deployment with each of these numbers of replicas, (n,)."""
    many = c.take(np.zeros(len(replicas), dtype=np.intp))
    return replace(many, layout=replace(many.layout, replicas=replicas))


def _method(catalog: Catalog, name: str) -> SpeculationMethod | None:
    return None if name == OFF else catalog.speculation_method(name)


def _interned(names: Sequence[Any]) -> tuple[list[Any], Indices]:
    """Return the distinct names in order of appearance, and the index of each."""
    index: dict[Hashable, int] = {}
    at = [index.setdefault(name, len(index)) for name in names]
    return list(index), np.array(at, dtype=np.intp)
