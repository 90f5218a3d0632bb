"""A search's study in a storage: found again by what it is of, and taken up where it ended."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import InputError
from planner.model.arrays import Indices
from planner.search.problem import Problem
from planner.search.shapes import ShapeTable
from planner.search.storage import OPTION, Address, Stale, opened
from planner.search.study import (
    FOUND_BY,
    HEURISTIC,
    PROOF,
    SWEEP,
    TARGETS,
    Judge,
    labels_of,
    objective_count,
    open_study,
    sampler,
)

if TYPE_CHECKING:
    from optuna import Study
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

NAME_DIGITS = 12
"""Hex digits of the digest that name a study."""
DIGEST = "inputs_digest"


@dataclass(frozen=True)
class Identity:
    """What a study is of: two runs share a study exactly if this is equal.

    Attributes:
        inputs: Everything that its trials' values rest on; JSON values.
        about: What a person reads of it in a dashboard.
    """

    inputs: Mapping[str, Any]
    about: Mapping[str, str]

    @property
    def digest(self) -> str:
        """SHA-256 over the inputs."""
        text = json.dumps(self.inputs, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def name(self) -> str:
        """Name of the study."""
        return f"plan-{self.digest[:NAME_DIGITS]}"

    def of(self, **more: Any) -> Identity:
        """Return the identity with further inputs."""
        return Identity({**self.inputs, **more}, self.about)


@dataclass(frozen=True)
class Store:
    """Where a study is kept, and what it is of."""

    address: Address
    identity: Identity


@contextmanager
def stored_study(
    store: Store, objectives: int, sampler: BaseSampler, stale: Stale | None = None
) -> Iterator[Study]:
    """Give the stored study of these inputs, made if there is none.

    Args:
        store: Where and of what.
        objectives: Number of objectives, all smaller is better.
        sampler: For further trials.
        stale: See ``storage.opened``.

    Raises:
        InputError: The storage cannot be used, or holds a study of other inputs by that name.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    identity = store.identity
    with opened(store.address, stale) as storage:
        study = optuna.create_study(
            storage=storage,
            study_name=identity.name,
            directions=["minimize"] * objectives,
            sampler=sampler,
            load_if_exists=True,
        )
        known = study.user_attrs.get(DIGEST)
        if known is None and not study.get_trials(deepcopy=False):
            for key, value in {**identity.about, DIGEST: identity.digest}.items():
                study.set_user_attr(key, value)
        elif known != identity.digest or len(study.directions) != objectives:
            message = f"{store.address.shown}: study '{study.study_name}' is of other inputs"
            raise InputError(OPTION, [f"{message}; name another storage, or delete the study"])
        yield study


@contextmanager
def search_study(problem: Problem, seed: int, store: Store | None) -> Iterator[Study]:
    """Give a search its study: a fresh one in memory, or the stored one of the same inputs."""
    if store is None:
        yield open_study(problem, seed)
        return
    with stored_study(store, objective_count(problem), sampler(seed)) as study:
        # What an earlier run added at its end changes nothing that the sampler proposes.
        trials = sum(FOUND_BY not in t.user_attrs for t in study.get_trials(deepcopy=False))
        if trials:
            # The generator begins anew: with the same seed it would propose what it has proposed.
            study.sampler = sampler(
                int(np.random.SeedSequence([seed, trials]).generate_state(1)[0])
            )
        yield study


@dataclass(frozen=True)
class Recovered:
    """What a stored study already holds.

    Attributes:
        planted: Rows of the shape table that the heuristic had proposed.
        sampled: Trials that the sampler proposed and that are done.
    """

    planted: Indices
    sampled: int


def recovered(study: Study, judge: Judge) -> Recovered:
    """Take up a study where an earlier run ended, however that ended.

    Trials that were asked for and never told are closed; where all their choices are known they
    are told now, as new trials. The shapes of all trials are scored again, which fills the
    archive; but not those that sweeps or the proof had found: they would change what this run
    scores, and it finds them again.
    """
    trials = study.get_trials(deepcopy=False)
    if not trials:
        return Recovered(np.zeros(0, dtype=np.intp), 0)
    problem, table = judge.archive.problem, judge.archive.table
    from optuna.trial import TrialState

    labels = labels_of(problem)
    done = [
        t
        for t in trials
        if t.state == TrialState.COMPLETE and t.user_attrs.get(FOUND_BY) not in (SWEEP, PROOF)
    ]
    cut = [t for t in trials if t.state == TrialState.RUNNING]
    whole = [t for t in cut if t.params.keys() == labels.keys()]
    rows = _rows(problem, table, [*done, *whole])
    judge.judge(rows)
    for trial in cut:
        study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
    for trial, verdict in zip(whole, judge.judge(rows[len(done) :]), strict=True):
        study.add_trial(_told(trial, list(verdict.values), verdict.violation))
    from_seed = np.array([t.user_attrs.get(FOUND_BY) == HEURISTIC for t in done], dtype=bool)
    return Recovered(
        planted=rows[: len(done)][from_seed],
        sampled=int((~from_seed).sum()) + len(whole),
    )


def known_shapes(study: Study, problem: Problem, table: ShapeTable) -> Indices:
    """Return the rows of the shape table that trials of a study stand for; -1 = no such shape.

    Open trials count: whoever asked for them tells them, or the next run does.
    """
    from optuna.trial import TrialState

    states = (TrialState.COMPLETE, TrialState.RUNNING)
    trials = study.get_trials(deepcopy=False, states=states)
    names = labels_of(problem).keys()
    return _rows(problem, table, [t for t in trials if t.params.keys() == names])


def _rows(problem: Problem, table: ShapeTable, trials: Sequence[FrozenTrial]) -> Indices:
    labels = labels_of(problem)
    index = {key: {label: i for i, label in enumerate(known)} for key, known in labels.items()}
    codes = [[index[key][trial.params[key]] for key in labels] for trial in trials]
    return table.find(np.array(codes, dtype=np.intp).reshape(len(trials), len(labels)))


def _told(trial: FrozenTrial, values: list[float], violation: float) -> FrozenTrial:
    import optuna

    return optuna.create_trial(
        params=trial.params,
        distributions=trial.distributions,
        values=values,
        constraints={TARGETS: violation},
        system_attrs={
            k: v for k, v in trial.system_attrs.items() if not k.startswith("constraint")
        },
    )
