"""What a prediction rests on: the engine on the accelerator, and the layout that is asked of it."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.efficiency import RANK
from planner.spec.archive import ClassArchive
from planner.spec.efficiency import Evidence


def row_evidence(archive: ClassArchive) -> Iterator[Evidence]:
    """Yield, for each row of a class, the worst of what is known of its parts.

    The fit saw replicas inside one server, without pipeline stages; speculation was measured on
    too few stacks to call any of them validated (planner/model/README.md).
    """
    rows = archive.rows
    known = {margin.generation: margin.evidence for margin in archive.margins}
    for generation, tp, pp, dp, method in zip(
        rows.generation, rows.tp, rows.pp, rows.dp, rows.speculation, strict=True
    ):
        spans = tp * dp > archive.hardware.gpus_per_instance
        layout: Evidence = "unvalidated" if pp > 1 or spans else "validated"
        drafts: Evidence = "validated" if method == "off" else "wide"
        yield max((known[generation], layout, drafts), key=RANK.__getitem__)
