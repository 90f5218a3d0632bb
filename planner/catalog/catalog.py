"""The catalog: what can be bought, what it can do, and who says so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from planner.catalog.lookup import Names
from planner.spec.accelerator import Accelerator
from planner.spec.calibration import Calibration
from planner.spec.efficiency import Efficiency
from planner.spec.engine import Engine, Generation
from planner.spec.offer import ExchangeRate, Offer, Terms
from planner.spec.precision import KvFormat, Precisions, WeightFormat
from planner.spec.speculation import Speculation, SpeculationMethod


@dataclass(frozen=True)
class Catalog:
    """Everything read from a catalog folder, its overlays and price files.

    Names are compared without case; space, hyphen and underscore are one; every look-up raises
    InputError with the nearest known name.

    Attributes:
        accelerators, engines: By id.
        precisions, speculation, efficiency: One file each.
        offers: Sorted by key; ``accelerator`` holds the id.
        exchange: Rates of the currencies that offers may use beside USD.
        digest: SHA-256 over all files read.
        basis_digest: SHA-256 over all but prices: what predictions rest on.
        calibration: Factors of own measurements to apply; None = none.
        newest_seen: Newest ``seen`` of all offers, YYYY-MM-DD.
        terms: What price terms mean beyond the price.
    """

    accelerators: Mapping[str, Accelerator]
    engines: Mapping[str, Engine]
    precisions: Precisions
    speculation: Speculation
    efficiency: Efficiency
    offers: tuple[Offer, ...]
    exchange: Mapping[str, ExchangeRate]
    digest: str
    basis_digest: str
    newest_seen: str
    calibration: Calibration | None = None
    terms: Terms = field(default_factory=Terms)

    def accelerator(self, name: str) -> Accelerator:
        """Return the accelerator of an id or alias."""
        return self._accelerators.find(name)

    def engine(self, name: str) -> Engine:
        """Return the engine of an id or alias."""
        return self._engines.find(name)

    def generation(self, engine: str, version: str = "") -> Generation:
        """Return the generation of an engine that a version belongs to.

        Args:
            engine: Id or alias of the engine.
            version: As the engine prints it, or a generation's id or alias; one that is blank or
                cannot be read means the current generation, one before the first the first.
        """
        generations = sorted(self.engine(engine).generations, key=lambda g: g.first_version)
        named = Names("engine generation", generations).get(version) if version else None
        if named is not None:
            return named
        current = [generation for generation in generations if generation.current]
        number = version_numbers(version)
        if not number:
            return (current or generations)[-1]
        reached = [g for g in generations if g.first_version <= number]
        return (reached or generations[:1])[-1]

    def generation_fault(self, engine: str, name: str) -> str:
        """Return why a name is that of no generation of an engine; empty = it is one's."""
        generations = Names("engine generation", self.engine(engine).generations)
        if generations.get(name) is not None:
            return ""
        allowed = ", ".join(generations.by_id)
        version = "; a version belongs into engine_version" if version_numbers(name) else ""
        return f"'{name}' is no generation of {engine}; allowed are {allowed}{version}"

    def weight_format(self, name: str) -> WeightFormat:
        """Return the weight format of an id or alias."""
        return self._weights.find(name)

    def kv_format(self, name: str) -> KvFormat:
        """Return the KV-cache format of an id or alias."""
        return self._kv.find(name)

    def speculation_method(self, name: str) -> SpeculationMethod:
        """Return the speculative-decoding method of an id or alias."""
        return self._methods.find(name)

    def usd_per_hour(self, offer: Offer) -> float:
        """Return the price of one instance [USD per hour]."""
        return offer.price_per_hour * self.usd_per_unit[offer.currency]

    def effective_usd_per_hour(self, offer: Offer) -> float:
        """Return the price of one instance-hour that does its work [USD]: spot is interrupted."""
        price = offer.effective_price_per_hour(self.terms.interruption_share)
        return price * self.usd_per_unit[offer.currency]

    @cached_property
    def usd_per_unit(self) -> Mapping[str, float]:
        """USD per unit of each currency that offers may use."""
        return {"USD": 1.0} | {code: rate.usd for code, rate in self.exchange.items()}

    @cached_property
    def _accelerators(self) -> Names[Accelerator]:
        return Names("accelerator", self.accelerators.values())

    @cached_property
    def _engines(self) -> Names[Engine]:
        return Names("engine", self.engines.values())

    @cached_property
    def _weights(self) -> Names[WeightFormat]:
        return Names("weight format", self.precisions.weights)

    @cached_property
    def _kv(self) -> Names[KvFormat]:
        return Names("KV-cache format", self.precisions.kv)

    @cached_property
    def _methods(self) -> Names[SpeculationMethod]:
        return Names("speculation method", self.speculation.methods)


def version_numbers(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: v0.6.1.post1 -> (0, 6, 1); () if there are none."""
    match = re.match(r"\s*v?(\d+(?:\.\d+)*)", text)
    return tuple(int(part) for part in match.group(1).split(".")) if match else ()
