"""What a prediction rests on: the engine on the accelerator, and the layout that is asked of it."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.efficiency import layout_evidence, unmeasured
from planner.spec.archive import ClassArchive
from planner.spec.efficiency import Evidence


def row_evidence(archive: ClassArchive) -> Iterator[Evidence]:
    """Yield, for each row of a class, the worst of what is known of its parts."""
    rows = archive.rows
    known = {margin.generation: margin.evidence for margin in archive.margins}
    layouts = unmeasured(rows.tp, rows.pp, rows.dp, archive.hardware.gpus_per_instance)
    for generation, unseen, method in zip(
        rows.generation, layouts.tolist(), rows.speculation, strict=True
    ):
        stack = known[generation]
        yield layout_evidence(stack, unmeasured=unseen, speculates=method != "off")
