"""Sweeps of large spaces on several processes: the same result, whatever happens to them."""

import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, replace
from io import BytesIO
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from planner import plan, portfolio
from planner.search import children, crew, parts
from planner.search import search as searching
from planner.search.archive import Archive
from planner.search.children import BEGIN, send, start
from planner.search.crew import HELPER, Crew, usable_cores
from planner.search.helper import Question, serve
from planner.search.parts import ENTRY, _spread, _work, divided
from planner.search.search import Settings, search
from planner.search.shapes import shape_table
from tests.search.problems import ROOT, everything, offline, random_problem, vectors

SEEDS = (3, 8, 11)
SCRIPT = """
from planner import plan
from planner.search import crew, parts, search
crew.usable_cores = lambda: 2
search.PROOF_SHAPES, search.SHARED_SHAPES, parts.LEAST = 100, 100, 20
told = set()
def progress(phrase, share):
    if phrase not in told:
        print(phrase, flush=True)
    told.add(phrase)
record = plan({slo!r}, space={space!r}, verify=False, progress=progress)
print(record.search.stopped, len(record.options) > 0)
"""


@pytest.fixture(autouse=True)
def small_spaces_are_large(monkeypatch):
    monkeypatch.setattr(searching, "PROOF_SHAPES", 100)
    monkeypatch.setattr(searching, "SHARED_SHAPES", 100)
    monkeypatch.setattr(parts, "LEAST", 20)
    monkeypatch.setattr(parts, "MOST", 200)


@pytest.fixture
def patient(monkeypatch):
    """Leave every part to the helpers, as long as one of them lives."""
    own = Crew._next

    def _next(self):
        alive = any(process.poll() is None for process, _ in self.helpers)
        return None if alive else own(self)

    monkeypatch.setattr(Crew, "_next", _next)


def content(found) -> tuple:
    """Everything that a search has found, to the last bit."""
    e = found.entries
    rows = [getattr(e.rows, column.name) for column in fields(e.rows)]
    columns = (e.hardware, e.points, e.served, *rows)
    return found.scored, found.proven, found.missed, *(column.tobytes() for column in columns)


@pytest.mark.parametrize("prove", [None, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_one_two_and_three_processes_find_the_same_to_the_last_bit(seed, prove):
    problem = random_problem(seed)
    one, two, three = (
        search(problem, settings=Settings(prove=prove, processes=count)) for count in (1, 2, 3)
    )
    assert content(one) == content(two) == content(three)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_proof_by_accelerator_finds_what_enumeration_finds(seed):
    problem = random_problem(seed)
    referee = search(problem, settings=Settings(enumerate_all=True))
    found = search(problem, settings=Settings(prove=True, processes=2))
    assert found.proven
    assert vectors(found.entries) == vectors(referee.entries)


@pytest.mark.usefixtures("patient")
def test_helpers_alone_find_the_same():
    problem = random_problem(8)
    alone = search(problem, settings=Settings(processes=3))
    assert content(alone) == content(search(problem, settings=Settings(processes=1)))


@pytest.mark.parametrize("cores", [2, 3])
@pytest.mark.parametrize("prove", [None, True])
def test_records_do_not_depend_on_the_number_of_cores(cores, prove, monkeypatch):
    def record(count):
        monkeypatch.setattr(crew, "usable_cores", lambda: count)
        slo = ROOT / "examples" / "chat-70b.yaml"
        return plan(slo, space="quick", verify=False, prove=prove).model_dump_json()

    assert record(cores) == record(1)


def test_parts_hold_every_shape_once_and_no_accelerator_is_in_two():
    problem = random_problem(8)
    table = shape_table(problem)
    split = divided(Archive(problem, table), everything(table))
    assert len(split) > 2
    assert sorted(np.concatenate([part.shapes for part in split])) == list(range(len(table)))
    chips = [
        set(problem.accelerators()[table.shapes.hardware[part.shapes]].tolist()) for part in split
    ]
    assert sum(map(len, chips)) == len(set().union(*chips))


def test_pieces_are_about_as_large_as_each_other():
    piece, sums = _spread(np.array([50.0, 40.0, 30.0, 30.0, 30.0]), 2)
    # The largest first, to the piece with the least: 50 | 40, 40 + 30, 50 + 30, 70 + 30.
    assert piece.tolist() == [0, 1, 1, 0, 1]
    assert sums.tolist() == [80.0, 100.0]


def test_a_known_entry_counts_as_many_shapes():
    problem = random_problem(8)
    archive = Archive(problem, shape_table(problem))
    chip = np.array([0, 0, 0, 1])
    assert _work(archive, chip).tolist()[:2] == [3.0, 1.0]
    of_chip_1 = int(np.flatnonzero(problem.accelerators() == 1)[0])
    archive.entries = replace(archive.entries, hardware=np.full(2, of_chip_1))
    assert _work(archive, chip).tolist()[:2] == [3.0, 1.0 + 2 * ENTRY]


def test_a_proof_that_makes_itself_is_shared_too(monkeypatch):
    problem = random_problem(8)
    monkeypatch.setattr(searching, "PROOF_SHAPES", 10**6)
    one, two = (search(problem, settings=Settings(processes=count)) for count in (1, 2))
    assert one.proven
    assert content(one) == content(two)


@pytest.mark.parametrize("few", ["shapes", "cores", "offline", "enumerated"])
def test_no_helpers_are_started_where_they_have_nothing_to_do(few, monkeypatch):
    monkeypatch.setattr(Crew, "_start", lambda *_: pytest.fail("started a helper"))
    monkeypatch.setattr(crew, "usable_cores", lambda: 1 if few == "cores" else 2)
    problem, settings = random_problem(8), Settings(enumerate_all=few == "enumerated")
    if few == "shapes":
        monkeypatch.setattr(searching, "SHARED_SHAPES", 10**6)
    if few == "offline":
        problem = offline(problem, requests=1000.0, deadline_s=3600.0)
    assert search(problem, settings=settings).candidates


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("lives", [0, 1, 3], ids="dies at part {}".format)
def test_what_a_helper_was_at_when_it_died_is_done_again(lives, monkeypatch):
    dying = f"""
import os
from planner.search.parts import Part
decide, left = Part.decide, [{lives}]
def die(*arguments):
    left[0] -= 1
    return decide(*arguments) if left[0] >= 0 else os._exit(9)
Part.decide = die
"""
    monkeypatch.setattr(children, "BEGIN", BEGIN.replace("main()", dying + "main()"))
    problem = random_problem(8)
    died = search(problem, settings=Settings(processes=2))
    assert content(died) == content(search(problem, settings=Settings(processes=1)))


@pytest.mark.parametrize(
    "text", ["raise SystemExit(3)", "print('hello')", "import nothing_like_it"]
)
@pytest.mark.usefixtures("patient")
def test_helpers_that_never_start_are_done_without(text, monkeypatch, capfd):
    monkeypatch.setattr(children, "BEGIN", text)
    problem = random_problem(8)
    found = search(problem, settings=Settings(processes=3))
    assert content(found) == content(search(problem, settings=Settings(processes=1)))
    assert capfd.readouterr() == ("", "")


def test_without_processes_the_search_goes_on_alone(monkeypatch):
    def refused(*_, **__):
        raise OSError("no more processes")

    monkeypatch.setattr(subprocess, "Popen", refused)
    problem = random_problem(8)
    assert search(problem, settings=Settings(processes=2)).stopped == "fixed point"


@pytest.mark.parametrize(
    ("phrase", "times"),
    [("trying what is usual", 1), ("sweeping around the best", 3)],
    ids=["at once", "in a sweep"],
)
def test_interrupting_keeps_what_was_found_and_ends_the_helpers(phrase, times, monkeypatch):
    crews, seen = [], []
    start = Crew._start
    monkeypatch.setattr(
        Crew, "_start", lambda self, known: (start(self, known), crews.append(self))
    )

    def impatient(said, share):
        seen.append(said)
        if seen.count(phrase) == times:
            raise KeyboardInterrupt

    found = search(random_problem(8), settings=Settings(processes=2), progress=impatient)
    assert found.stopped == "interrupted"
    assert bool(len(found.entries)) == (times > 1)
    ((process, thread),) = crews[0].helpers
    assert process.poll() is not None
    assert not thread.is_alive()


@pytest.mark.usefixtures("patient")
def test_what_a_helper_has_found_when_it_is_time_is_kept(monkeypatch):
    monkeypatch.setattr(crew, "PATIENCE_S", 60.0)
    problem = random_problem(8)
    table = shape_table(problem)
    split = divided(Archive(problem, table), everything(table))
    with Crew(problem, table, 2) as both:
        # It is time as soon as the helper is at the last part.
        assert not both.decide(split, both._open.empty, lambda _: None)
    assert all(part.archive.scored for part in split)


@pytest.mark.usefixtures("patient")
def test_parts_that_helpers_had_no_time_for_prove_nothing():
    problem = random_problem(8)
    table = shape_table(problem)
    split = divided(Archive(problem, table), everything(table))
    with Crew(problem, table, 2, end=0.0) as both:
        assert not both.decide(split, lambda: False, lambda _: None)


def test_a_helper_stops_by_the_clock():
    problem = random_problem(8)
    table = shape_table(problem)
    shapes = everything(table)
    entries = Archive(problem, table).entries
    asked, answers = BytesIO(), BytesIO()
    for message in [(problem, table), *(Question(shapes, entries, s) for s in (-1.0, np.inf))]:
        send(message, asked)
    asked.seek(0)
    with pytest.raises(EOFError):
        serve(lambda: pickle.load(asked), answers)
    answers.seek(0)
    ready, late, done = (pickle.load(answers) for _ in range(3))
    assert ready is None
    assert (late.whole, late.scored, len(late.entries)) == (False, 0, 0)
    assert done.whole
    assert len(done.entries)


def test_a_time_limit_of_nothing_begins_no_sweep():
    found = search(random_problem(8), settings=Settings(time_limit=1e-9, processes=2))
    assert found.stopped == "time limit"
    assert not found.proven


def test_progress_never_goes_back():
    shares = []
    search(
        random_problem(8),
        settings=Settings(prove=True, processes=2),
        progress=lambda said, share: shares.append(share) if said == "proving the front" else None,
    )
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1


BUSY = """
import time
from planner.search.parts import Part
Part.decide = lambda *_: (print("busy", file=sys.stderr, flush=True), time.sleep(600))
"""


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "at a part"])
def test_a_helper_ends_with_its_input_whatever_it_is_at(busy, monkeypatch):
    """As it does when the process that started it is killed."""
    monkeypatch.setattr(children, "BEGIN", BEGIN.replace("main()", BUSY + "main()"))
    problem = random_problem(8)
    table = shape_table(problem)
    with start(HELPER, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            send((problem, table), process.stdin)
            assert pickle.load(process.stdout) is None
            if busy:
                entries = Archive(problem, table).entries
                send(Question(everything(table), entries, np.inf), process.stdin)
                assert process.stderr.readline() == b"busy\n"
            process.stdin.close()
            assert process.wait(timeout=20) == 1
        finally:
            process.kill()


def run_script(folder: Path, space: str = "quick") -> subprocess.Popen[str]:
    """Run a script that plans and has no main guard, from elsewhere."""
    file = folder / "script.py"
    file.write_text(SCRIPT.format(slo=str(ROOT / "examples" / "chat-70b.yaml"), space=space))
    return subprocess.Popen(
        [sys.executable, str(file)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_a_script_without_a_main_guard_plans_once(tmp_path):
    with run_script(tmp_path) as process:
        said, faults = process.communicate(timeout=120)
    assert said.splitlines() == [
        "trying what is usual",
        "sampling shapes",
        "sweeping around the best",
        "fixed point True",
    ]
    assert faults == ""


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_control_c_reaches_all_processes_and_leaves_no_traceback(tmp_path):
    with run_script(tmp_path, "wide") as process:
        for line in process.stdout:
            if line.startswith("sweeping"):
                os.killpg(process.pid, signal.SIGINT)
                break
        said, faults = process.communicate(timeout=120)
    assert said.splitlines()[-1] == "interrupted True"
    assert faults == ""


def test_plans_of_a_portfolio_start_no_processes(monkeypatch):
    monkeypatch.setattr(Crew, "_start", lambda *_: pytest.fail("started a helper"))
    assert portfolio([ROOT / "examples" / "chat-70b.yaml"], space="quick").plans


def test_processes_of_a_pool_start_no_further_ones():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(usable_cores).result() == 1
