"""Where the closed formula misses what simulations said of the picks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from planner.pareto import rounded
from planner.select.answers import STANDARD
from planner.spec.verification import Verification

MISS = 1.5
"""Factor between formula and simulation from which the formula is said to miss."""
FORMULA_MISSES = "The closed formula misses the simulation by a factor of "


def formula_misses(checks: Sequence[Verification], picked: Mapping[str, str]) -> Iterator[str]:
    """Yield the picks whose formula misses their simulation, in one sentence; none = no pick's.

    Args:
        checks: What simulations said, each of an option as it was sized by them.
        picked: Pick -> option id.
    """
    seen = {check.option: check for check in checks}
    names: dict[str, list[str]] = {}
    for pick, identity in picked.items():
        names.setdefault(identity, []).append(pick)
    told = [
        f"{', '.join(named)}: {', '.join(figures)}"
        for identity, named in names.items()
        if identity in seen and (figures := list(_figures(seen[identity])))
    ]
    if told:
        yield (
            f"{FORMULA_MISSES}{MISS:g} or more (formula / simulated: {'; '.join(told)}). Limits"
            " are judged by the simulation."
        )


def _figures(check: Verification) -> Iterator[str]:
    for entry in check.latencies:
        formula, simulated = entry.formula_ms, entry.simulated_ms
        key = entry.key.rpartition(".")[-1]
        if key not in STANDARD or formula is None or simulated is None:
            continue
        if max(formula / simulated, simulated / formula) >= MISS:
            windows = entry.windows_ms
            beside = "" if windows is None else f", by windows {_short(windows)}"
            yield f"{entry.key} {_short(formula)} / {_short(simulated)}{beside}"


def _short(value: float) -> str:
    """Return a value with four digits, no exponent."""
    return f"{float(rounded(value, 4)):,.10g}"
