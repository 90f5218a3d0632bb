"""The plan command: from slo.yaml to a record."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from types import SimpleNamespace

import pytest

from planner.candidates.efficiency import interval
from planner.candidates.margins import error_factor
from planner.catalog import load_catalog
from planner.commands.plan import plan
from planner.errors import InputError
from planner.search.search import search
from planner.spec.record import PlanRecord
from planner.spec.slo import Slo

EXAMPLES = Path(__file__).parents[2] / "examples"
CATALOG = load_catalog()
planning = import_module("planner.commands.plan")


def asked(**changes) -> Slo:
    base = {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "traffic": {
            "rate_per_s": 6.0,
            "mean_rate_per_s": 3.0,
            "prompt_tokens": {"p50": 900.0, "p95": 2700.0},
            "output_tokens": {"p50": 200.0, "p95": 600.0},
        },
        "slo": {"ttft_p95_ms": 900.0, "tpot_p95_ms": 40.0},
        "purchase": {
            "accelerators": ("h100-sxm", "l40s", "a100-sxm-80"),
            "allow_unvalidated": True,
        },
    }
    return Slo.model_validate({**base, **changes})


@pytest.fixture(scope="module")
def record() -> PlanRecord:
    return plan(asked(), catalog=CATALOG, space="quick", verify=False)


def test_the_chat_example_is_answered_on_several_accelerators_and_precisions():
    found = plan(EXAMPLES / "chat-70b.yaml", catalog=CATALOG, verify=False)
    assert len(found.options) >= 5
    assert len({option.accelerator for option in found.options}) >= 2
    assert len({option.weights for option in found.options}) >= 2
    assert found.search.proven
    assert set(found.picks) == {
        "cheapest", "balanced", "lowest_ttft", "lowest_tpot", "best_quality",
    }  # fmt: skip
    for option in found.options:
        assert option.money.usd_per_hour <= 200
        assert option.gpus <= 64
        assert option.quality.p90 <= 3.0
        assert all(target.holds for target in option.targets)
        assert option.flags == ()


@pytest.mark.parametrize("name", ["rag-8b", "code-moe-mla", "long-context", "offline-batch"])
def test_every_example_has_an_answer(name):
    found = plan(EXAMPLES / f"{name}.yaml", catalog=CATALOG, space="quick", verify=False)
    assert found.options
    assert not found.misses


def test_the_infeasible_example_says_what_would_do():
    found = plan(EXAMPLES / "infeasible.yaml", catalog=CATALOG, space="quick", verify=False)
    assert found.options == ()
    assert found.picks == {}
    assert 1 <= len(found.misses) <= 3
    for miss in found.misses:
        assert miss.excess > 1
        assert any("target 5" in text for text in miss.misses)
        assert any("slo.ttft_p95_ms: " in text for text in miss.would_do)
    assert found.misses[0].kind == "within the purchase limits"
    assert found.misses[0].option.gpus <= 8


def test_the_record_survives_its_own_json(record):
    text = record.model_dump_json(by_alias=True)
    assert PlanRecord.model_validate_json(text) == record


def test_the_same_plan_gives_the_same_bytes(record):
    again = plan(asked(), catalog=CATALOG, space="quick", verify=False)
    assert again.model_dump_json(by_alias=True) == record.model_dump_json(by_alias=True)


def test_options_are_sorted_by_price_and_picks_are_among_them(record):
    costs = [option.money.usd_per_mtok_output for option in record.options]
    assert costs == sorted(costs)
    ids = [option.id for option in record.options]
    assert len(set(ids)) == len(ids)
    assert set(record.picks.values()) | set(record.shown) <= set(ids)
    assert record.picks["cheapest"] == ids[0]


def test_an_option_adds_up(record):
    for option in record.options:
        money, memory = option.money, option.memory
        per_instance = option.gpus // option.instances
        assert option.gpus_per_replica == option.tp * option.pp * option.dp
        assert option.replicas * option.gpus_per_replica <= option.gpus
        assert money.usd_per_hour == pytest.approx(
            option.instances * money.price.usd_per_instance_hour, rel=1e-5
        )
        # Paid for at 3 of 6 requests/s: half of the output that it is sized for.
        half = option.output_tokens_per_s / 2
        assert money.usd_per_mtok_output == pytest.approx(
            money.usd_per_hour / (half * 3600 / 1e6), rel=1e-4
        )
        assert money.usd_per_mtok_output == pytest.approx(
            money.usd_per_mtok_full / money.mean_utilization, rel=1e-4
        )
        parts = memory.weights_gib + memory.kv_pool_gib + memory.reserve_gib + memory.unused_gib
        assert parts == pytest.approx(memory.device_gib, rel=1e-4)
        assert option.bound_tpot_ms < option.tpot.p50_ms <= option.tpot.p95_ms
        assert option.tpot.p95_ms <= option.tpot.p95_upper_ms
        assert option.utilization <= 0.8 + 1e-6
        offer = record.offers[money.price.offer]
        assert (offer.provider, offer.region) == (option.provider, option.region)
        assert offer.gpus == per_instance
        archive = next(a for a in record.archive if a.hardware.id == option.hardware)
        assert archive.rows.weights[option.archive_row] == option.weights


def test_a_margin_is_the_error_quantile_of_its_accelerator(record):
    option = record.options[0]
    chip = CATALOG.accelerators[option.accelerator]
    factor = max(1.0, interval(CATALOG.efficiency, option.generation, chip, "tpot", 0.8))
    assert option.tpot.p95_upper_ms == pytest.approx(option.tpot.p95_ms * factor, rel=1e-4)


@pytest.mark.parametrize(
    ("quantile", "confidence", "expected"),
    [(1.3, 0.8, 1.3), (0.9, 0.8, 1.0), (1.3, 0.5, 1.0)],
    ids=["the quantile", "a pessimistic model gives no discount", "0.5 asks for no margin"],
)
def test_a_margin_never_lowers_a_prediction(quantile, confidence, expected):
    assert error_factor(quantile, confidence) == expected


def test_prices_times_c_cost_c_times_as_much(record, tmp_path):
    chips = {"h100-sxm", "l40s", "a100-sxm-80"}
    lines = ["provider,instance_type,region,term,list_price_per_hour"]
    lines += [
        f'"{o.provider}","{o.instance_type}","{o.region}",{o.term},{3 * o.price_per_hour!r}'
        for o in CATALOG.offers
        if o.accelerator in chips and o.term == "on_demand" and not o.flag
    ]
    file = tmp_path / "prices.csv"
    file.write_text("\n".join(lines) + "\n")
    dear = plan(asked(), prices=(file,), space="quick", verify=False)
    assert [o.id for o in dear.options] == [o.id for o in record.options]
    assert dear.picks == record.picks
    for ours, theirs in zip(record.options, dear.options, strict=True):
        assert theirs.money.usd_per_hour == pytest.approx(3 * ours.money.usd_per_hour, rel=1e-5)


def test_a_tighter_target_is_never_cheaper(record):
    tight = plan(
        asked(slo={"ttft_p95_ms": 450.0, "tpot_p95_ms": 20.0}),
        catalog=CATALOG,
        space="quick",
        verify=False,
    )
    cheapest = [r.options[0].money.usd_per_mtok_output for r in (record, tight)]
    assert cheapest[0] <= cheapest[1]


def test_spare_replicas_are_bought_and_carry_nothing(record):
    base = asked()
    spare = base.purchase.model_copy(update={"spare_replicas": 1})
    more = plan(
        base.model_copy(update={"purchase": spare}), catalog=CATALOG, space="quick", verify=False
    )
    option = more.options[0]
    assert option.spare_replicas == 1
    assert (option.replicas + 1) * option.gpus_per_replica <= option.gpus
    assert option.money.usd_per_hour >= record.options[0].money.usd_per_hour


def test_without_evidence_nothing_is_picked_and_the_reason_is_given():
    found = plan(
        asked(purchase={"accelerators": ("tpu-v6e", "gaudi3")}),
        catalog=CATALOG,
        space="quick",
        verify=False,
    )
    assert found.options == ()
    assert found.untrusted
    assert all("unvalidated evidence" in option.flags for option in found.untrusted)
    assert any("purchase.allow_unvalidated: true" in miss.would_do for miss in found.misses)


def test_a_miss_by_the_rate_alone_names_the_rate_or_replicas():
    found = plan(
        asked(slo={"tpot_p95_ms": 9.0}, purchase={
            "accelerators": ("l40s",), "allow_unvalidated": True, "max_gpus": 400,
        }),
        catalog=CATALOG,
        space="quick",
        verify=False,
    )  # fmt: skip
    if not found.options:
        assert all(miss.would_do for miss in found.misses)


class TestRefusals:
    def test_an_unknown_space_is_answered_with_the_nearest(self):
        with pytest.raises(InputError, match="unknown space 'quik'; did you mean 'quick'"):
            plan(asked(), catalog=CATALOG, space="quik")

    def test_an_engine_that_is_not_searched_is_refused(self):
        with pytest.raises(InputError, match="tgi is scored but not searched"):
            plan(asked(engines=("tgi",)), catalog=CATALOG)

    def test_a_context_beyond_the_model_is_refused(self):
        traffic = {
            "rate_per_s": 1.0,
            "prompt_tokens": 900.0,
            "output_tokens": 100.0,
            "max_context_tokens": 500_000,
        }
        with pytest.raises(InputError, match="above the 131072 tokens"):
            plan(asked(traffic=traffic), catalog=CATALOG)

    def test_an_unknown_model_is_answered(self):
        with pytest.raises(InputError, match="unknown model"):
            plan(asked(model="acme/none-7b"), catalog=CATALOG)

    def test_a_model_path_is_relative_to_the_file(self, tmp_path):
        file = tmp_path / "slo.yaml"
        file.write_text(OWN_MODEL)
        with pytest.raises(InputError, match=str(tmp_path / "models")):
            plan(file, catalog=CATALOG)

    @pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no /dev/shm")
    def test_a_folder_in_memory_is_a_folder_like_any_other(self):
        with TemporaryDirectory(dir="/dev/shm") as folder:
            file = Path(folder, "slo.yaml")
            file.write_text(OWN_MODEL)
            with pytest.raises(InputError, match=f"{folder}/models"):
                plan(file, catalog=CATALOG)

    @pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="no /dev/fd")
    def test_a_model_path_in_what_is_piped_in_is_relative_to_the_current_folder(self):
        """Expected: the same message for a pipe and for a file that the shell has opened."""
        for kind in (pipe, opened, opened_by_the_process):
            with kind(OWN_MODEL) as path, pytest.raises(InputError) as refused:
                plan(path, catalog=CATALOG)
            assert str(refused.value).startswith("models/config.json: 1 problem")


OWN_MODEL = """
model: models/config.json
traffic: {rate_per_s: 1, prompt_tokens: 9, output_tokens: 9}
slo: {ttft_p95_ms: 900}
"""


@contextmanager
def pipe(text: str) -> Iterator[Path]:
    """As a shell's ``<(...)`` gives it."""
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    yield Path(f"/dev/fd/{reader}")
    os.close(reader)


@contextmanager
def opened(text: str) -> Iterator[Path]:
    """As ``--slo /dev/stdin < slo.yaml`` gives it."""
    with TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        yield Path(f"/dev/fd/{file.fileno()}")


@contextmanager
def opened_by_the_process(text: str) -> Iterator[Path]:
    """As ``--slo /proc/self/fd/0 < slo.yaml`` gives it."""
    with opened(text) as path:
        yield Path("/proc/self/fd" if Path("/proc/self/fd").is_dir() else "/dev/fd", path.name)


class TestALimitOfTime:
    """Two searches, near the targets and everywhere, share it."""

    def searches(self, monkeypatch, spent: float, stopped: str) -> list[float]:
        """Return the time limits of the searches of a plan that finds nothing in 10 s."""
        limits, clock = [], [100.0]

        def timed(problem, guide, settings, progress):
            limits.append(settings.time_limit)
            clock[0] += spent
            return replace(search(problem, guide, replace(settings, trials=0)), stopped=stopped)

        monkeypatch.setattr(planning, "search", timed)
        monkeypatch.setattr(planning, "time", SimpleNamespace(monotonic=lambda: clock[0]))
        never = asked(slo={"ttft_p95_ms": 0.1, "tpot_p95_ms": 0.1})
        plan(never, catalog=CATALOG, space="quick", time_limit=10.0)
        return limits

    def test_the_second_search_gets_what_is_left(self, monkeypatch):
        assert self.searches(monkeypatch, 4.0, "fixed point") == [10.0, 6.0]

    def test_the_second_search_has_a_limit_though_nothing_is_left(self, monkeypatch):
        first, second = self.searches(monkeypatch, 11.0, "fixed point")
        assert (first, 0 < second < 1e-6) == (10.0, True)

    @pytest.mark.parametrize("stopped", ["interrupted", "time limit"])
    def test_what_was_cut_short_is_not_followed_by_another_search(self, stopped, monkeypatch):
        assert self.searches(monkeypatch, 4.0, stopped) == [10.0]
