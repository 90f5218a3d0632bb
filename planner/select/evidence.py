"""What a prediction rests on: the engine on the accelerator, and the layout that is asked of it."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.efficiency import layout_evidence
from planner.spec.archive import ClassArchive
from planner.spec.efficiency import Evidence


def row_evidence(archive: ClassArchive) -> Iterator[Evidence]:
    """Yield, for each row of a class, the worst of what is known of its parts."""
    rows = archive.rows
    known = {margin.generation: margin.evidence for margin in archive.margins}
    for generation, tp, pp, dp, method in zip(
        rows.generation, rows.tp, rows.pp, rows.dp, rows.speculation, strict=True
    ):
        spans = tp * dp > archive.hardware.gpus_per_instance
        stack = known[generation]
        yield layout_evidence(stack, pp=pp, spans=spans, speculates=method != "off")
