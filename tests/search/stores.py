"""Stored studies of the tests: where they are, and what is in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import optuna

from planner.search.archive import Archive
from planner.search.search import Settings
from planner.search.shapes import shape_table
from planner.search.storage import Address, opened
from planner.search.stored_study import Identity, Store
from planner.search.study import Judge, labels_of


def store(path: Path, **inputs) -> Store:
    return Store(Address(str(path)), Identity({"model": "m", **inputs}, {}))


def settings(path: Path, trials: int = 80) -> Settings:
    return Settings(trials=trials, store=store(path))


def judge_of(problem, guide=None) -> Judge:
    """A judge with an empty archive; every instance weighs the same unless told."""
    alike = np.ones(len(problem.tables.hardware))
    return Judge(Archive(problem, shape_table(problem)), alike if guide is None else guide)


def stored(text: str) -> list[optuna.trial.FrozenTrial]:
    """Trials of the only study in a storage, by Optuna's own means."""
    with opened(Address(text)) as storage:
        (summary,) = optuna.get_all_study_summaries(storage)
        return optuna.load_study(storage=storage, study_name=summary.study_name).trials


def told(text: str) -> list[optuna.trial.FrozenTrial]:
    """Trials of the only study in a storage that have values."""
    return [trial for trial in stored(text) if trial.state.name == "COMPLETE"]


def rows_of(problem, table, trials) -> list[int]:
    """Rows of the shape table that trials stand for, label by label."""
    labels = labels_of(problem)
    codes = [[labels[key].index(trial.params[key]) for key in labels] for trial in trials]
    return table.find(np.array(codes, dtype=np.intp).reshape(-1, len(labels))).tolist()
