"""What a plan reads besides the catalog: slo.yaml and the search space."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from planner.candidates.demand import longer_share, of_model, with_headroom
from planner.candidates.trace_load import TraceLoad, with_trace
from planner.catalog import Catalog, data_root
from planner.commands.slo_names import unknown_names
from planner.errors import Fault, InputError, suggestion
from planner.files import Document, key_path
from planner.importers.traces import Trace
from planner.spec.architecture import Architecture
from planner.spec.load import by_line, load_with_lines, load_yaml
from planner.spec.slo import Slo
from planner.spec.space import SearchSpace

STREAM = re.compile(r"/dev/stdin|/dev/fd/\d+|/proc/.+/fd/\d+")
"""Paths of what a process has open."""
MOST_CUT = 0.5
"""Share of the requests that may be longer than what is served."""
NAMELESS = "slo.yaml"
"""Source of faults in an SLO that are found without its file."""


def read_slo(slo: Path | str | Slo, catalog: Catalog) -> tuple[Slo, Path, Document | None]:
    """Return an SLO, the folder that its paths start from and, for lines, its file, if it has one.

    The file is read once: a pipe has nothing left for a second time.

    Raises:
        InputError: It cannot be used; names that the catalog lacks are told with the rest.
    """
    if isinstance(slo, Slo):
        return slo, Path(), None
    path = Path(slo)
    folder = Path() if _piped(path) else path.parent
    asked, document = load_with_lines(
        path, Slo, lambda written: unknown_names(written, catalog, folder)
    )
    return asked, folder, document


@contextmanager
def placed(written: Document | None) -> Iterator[None]:
    """Tell faults of an slo.yaml with its name and lines, where it came from a file."""
    try:
        yield
    except InputError as error:
        if written is None or error.source != NAMELESS:
            raise
        faults = (written.fault(key_path(f.key), f.message) for f in error.faults)
        raise InputError(written.source, faults) from None


def recorded_load(
    asked: Slo, folder: Path, written: Document | None, catalog: Catalog
) -> TraceLoad | None:
    """Return the trace that an SLO names, and the SLO with its figures; None = it names none.

    Raises:
        InputError: It cannot be used; names that the catalog lacks are told with it.
    """
    if asked.traffic.trace is None:
        return None
    if written is None:
        return with_trace(asked, folder)
    try:
        return with_trace(asked, folder, written)
    except InputError as error:
        names = unknown_names(written, catalog, folder)
        if not names:
            raise
        raise InputError(written.source, by_line([*names, *_of_trace(error, written)])) from None


def served(asked: Slo, model: Architecture, trace: Trace | None = None) -> Slo:
    """Return an SLO with the headroom that holds for it, its requests cut as the model cuts them.

    Args:
        asked: The SLO.
        model: Whose context is the longest.
        trace: Where its lengths come from; None = they are stated.

    Raises:
        InputError: It allows more tokens than the model takes, or most requests would be cut: a
            plan for what is left of them is not for them.
    """
    result = of_model(asked, model.max_context_tokens)
    faults = [*_above(asked, model), *_cut(result, model, trace)]
    if faults:
        raise InputError(NAMELESS, faults)
    return with_headroom(result)


def _above(asked: Slo, model: Architecture) -> Iterator[Fault]:
    """Yield the longest request allowed, where it is longer than the model takes."""
    own, most = asked.traffic.max_context_tokens, model.max_context_tokens
    if own is not None and own > most:
        message = f"{own} is above the {most} tokens of {model.name}; lower it"
        yield Fault("", "traffic.max_context_tokens", message)


def _cut(asked: Slo, model: Architecture, trace: Trace | None) -> Iterator[Fault]:
    """Yield that more than half of the requests are longer than what is served, where they are."""
    traffic, most = asked.traffic, model.max_context_tokens
    longest = traffic.longest or most
    if trace is None:
        share = longer_share(asked, longest)
        place = "traffic.prompt_tokens" if traffic.classes is None else "traffic.classes"
    else:
        share = float(np.mean(trace.prompt_tokens + trace.output_tokens > longest))
        place = "traffic.trace"
    if share > MOST_CUT:
        whose, repair = f"that {model.name} takes", "name a model with a longer context"
        if longest < most:
            whose, repair = "of traffic.max_context_tokens", "raise it"
        yield Fault(
            "",
            place,
            f"{share:.0%} of the requests are longer than the {longest} tokens {whose};"
            f" {repair}, or state shorter requests",
        )


def _of_trace(error: InputError, written: Document) -> Iterator[Fault]:
    """Yield the faults of a trace, at the line of the slo.yaml that names it."""
    if error.source == written.source:
        yield from error.faults
        return
    for fault in error.faults:
        yield written.fault(("traffic", "trace"), f"{error.source}: {fault}")


def _piped(path: Path) -> bool:
    """Return whether a path names what a shell has opened, which lies in no folder of the user's.

    As /dev/stdin and /dev/fd/63 do, for pipes and for files.
    """
    entry = path.parent.resolve() / path.name
    return STREAM.fullmatch(str(entry)) is not None or not path.is_file()


def read_space(space: str | Path | SearchSpace) -> SearchSpace:
    """Return a search space by name or from a file (raises InputError)."""
    if isinstance(space, SearchSpace):
        return space
    shipped = data_root() / "search_spaces"
    path = shipped / f"{space}.yaml"
    if isinstance(space, Path) or not path.is_file():
        path = Path(space)
    if not path.is_file() and path.suffix not in (".yaml", ".yml"):
        names = sorted(file.stem for file in shipped.glob("*.yaml"))
        near = suggestion(str(space), names)
        hint = near or f"; known are {', '.join(names)}, or give a file"
        raise InputError("--space", [f"unknown space '{space}'{hint}"])
    return load_yaml(path, SearchSpace)
