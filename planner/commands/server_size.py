"""Servers of given deployments: how many GPUs one is taken to hold, which no column says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from planner.candidates.points import SERVER_GPUS
from planner.catalog import Catalog
from planner.errors import InputError
from planner.spec.point import Point


def server_size(catalog: Catalog, points: Sequence[Point]) -> Iterator[str]:
    """Yield a remark on the size of servers, where a deployment rests on it.

    A replica of at most so many GPUs is taken to lie in one server; what is larger crosses the
    network between servers.

    Args:
        catalog: Its offers tell in which servers accelerators are sold.
        points: The deployments.
    """
    sizes = [(point.accelerator, point.tp * point.pp * point.dp) for point in points]
    across = any(gpus > SERVER_GPUS for name, gpus in sizes if name)
    smaller = sorted(set(_smaller(catalog, sizes)))
    if across or smaller:
        sold = f"; the catalog sells at most {', '.join(smaller)}" if smaller else ""
        larger = "; larger replicas cross the network" if across else ""
        yield f"servers are taken to hold {SERVER_GPUS} GPUs, which no column says{larger}{sold}"


def _smaller(catalog: Catalog, sizes: Iterable[tuple[str, int]]) -> Iterator[str]:
    """Yield which accelerators are sold in servers smaller than a replica in one is taken to be."""
    largest: dict[str, int] = {}
    for offer in catalog.offers:
        largest[offer.accelerator] = max(offer.gpus, largest.get(offer.accelerator, 0))
    for name, gpus in sizes:
        try:
            chip = catalog.accelerator(name).id if name else ""
        except InputError:
            continue
        sold = largest.get(chip, gpus)
        if sold < min(gpus, SERVER_GPUS):
            yield f"{sold} x {chip}"
