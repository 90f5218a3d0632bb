"""Where nothing works, what the plan proposes must work."""

from dataclasses import replace

import pytest

from planner.catalog import load_catalog
from planner.catalog.models import find_architecture
from planner.commands.inputs import read_space
from planner.commands.plan import plan
from planner.cost import allowed_offers
from planner.search.setup import setting
from planner.search.shortage import shortage
from planner.select.misses import _above, _text
from planner.spec.slo import Slo

CATALOG = load_catalog()
BASE = {
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "traffic": {
        "rate_per_s": 8.0,
        "prompt_tokens": {"p50": 900.0, "p95": 2700.0},
        "output_tokens": {"p50": 200.0, "p95": 600.0},
    },
    "slo": {"ttft_p95_ms": 900.0, "tpot_p95_ms": 40.0},
    "purchase": {"accelerators": ["l4", "l40s", "h100-sxm"], "allow_unvalidated": True},
}


def merged(base, changes):
    out = dict(base)
    for key, value in changes.items():
        nested = isinstance(value, dict) and isinstance(out.get(key), dict)
        # Lengths are replaced whole.
        out[key] = merged(out[key], value) if nested and "_tokens" not in key else value
    return out


def planned(changes):
    values = merged(BASE, changes)
    purchase = values["purchase"] | {"accelerators": tuple(values["purchase"]["accelerators"])}
    slo = Slo.model_validate(values | {"purchase": purchase})
    return plan(slo, catalog=CATALOG, space="quick", verify=False)


def applied(change):
    """A proposal as changes to slo.yaml: ``slo.ttft_p95_ms: 1310 with rate_per_s: 7``."""
    changes = {}
    for part in change.split(" with "):
        key, value = part.split(": ")
        path = ("traffic." + key if key == "rate_per_s" else key).split(".")
        leaf = {path[-1]: value == "true" if value in ("true", "false") else float(value)}
        if path[-1] == "max_gpus":
            leaf = {"max_gpus": int(float(value))}
        for name in reversed(path[:-1]):
            leaf = {name: leaf}
        changes = merged(changes, leaf)
    return changes


CASES = {
    "a TPOT that no accelerator reaches": {"slo": {"tpot_p95_ms": 1.5}},
    "both targets out of reach": {"slo": {"ttft_p95_ms": 8.0, "tpot_p95_ms": 1.0}},
    "a budget of a dollar": {"purchase": {"budget_usd_per_hour": 0.5}},
    "one GPU for a high rate": {"purchase": {"max_gpus": 1}, "traffic": {"rate_per_s": 60.0}},
    "a target and a budget": {
        "slo": {"tpot_p95_ms": 6.0},
        "purchase": {"budget_usd_per_hour": 1.0},
    },
    "a quota too small and targets out of reach": {
        "slo": {"ttft_p95_ms": 8.0, "tpot_p95_ms": 1.0},
        "purchase": {"max_gpus": 1},
        "traffic": {"rate_per_s": 60.0},
    },
    "power for a fraction of a server": {"purchase": {"max_power_kw": 0.5}},
    "nothing measured and both targets out of reach": {
        "purchase": {"accelerators": ["gaudi3", "tpu-v6e"], "allow_unvalidated": False},
        "slo": {"ttft_p95_ms": 8.0, "tpot_p95_ms": 1.0},
    },
    "nothing measured": {
        "purchase": {"accelerators": ["gaudi3", "tpu-v6e"], "allow_unvalidated": False}
    },
    "a full GPU, beyond the gates": {
        "headroom": 1.0,
        "purchase": {"max_gpus": 1, "accelerators": ["l40s"]},
        "traffic": {"rate_per_s": 60.0},
        "slo": {"ttft_p95_ms": 1e6, "tpot_p95_ms": 1e5},
    },
}


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES.keys())
def test_each_proposal_makes_the_plan_work(changes):
    record = planned(changes)
    assert record.options == ()
    assert record.misses
    proposals = [text for miss in record.misses for text in miss.would_do]
    assert proposals
    for text in proposals:
        if " more" in text:
            continue
        assert planned(merged(changes, applied(text))).options, text


def test_no_limit_is_promised_to_help_beyond_the_gates():
    changes = {
        "model": "meta-llama/Llama-3.3-70B-Instruct",
        "headroom": 0.7,
        "traffic": {"rate_per_s": 6.0, "prompt_tokens": 12000.0, "output_tokens": 30.0},
        "slo": {"tpot_p90_ms": 40.0, "ttft_p95_ms": None, "tpot_p95_ms": None},
        "purchase": {
            "accelerators": ["l40s"],
            "allow_unvalidated": False,
            "allow_flagged_prices": True,
            "budget_usd_per_hour": 50.0,
        },
    }
    gated = [miss for miss in planned(changes).misses if "beyond the gates" in miss.misses]
    assert gated
    for miss in gated:
        # With fewer than 8 sequences at a time, no lower rate helps either.
        assert miss.option.slots < 8.0
        assert miss.would_do == ()


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES.keys())
def test_each_limit_moved_alone_as_told_makes_the_plan_work(changes):
    record = planned(changes)
    for one in record.relaxations:
        assert planned(merged(changes, applied(f"{one.limit}: {one.needed:g}"))).options, one.limit


def test_a_limit_that_does_not_help_alone_is_left_out():
    assert planned(CASES["both targets out of reach"]).relaxations == ()


def test_what_a_limit_alone_would_cost_is_the_price_of_a_plan_without_it():
    found = {one.limit: one for one in planned(CASES["a budget of a dollar"]).relaxations}
    one = found["purchase.budget_usd_per_hour"]
    cheapest = planned({}).options[0].money.usd_per_hour
    assert one.asked == 0.5
    assert one.option.money.usd_per_hour == pytest.approx(cheapest)
    assert cheapest <= one.needed <= cheapest * 1.01


def test_what_the_quota_allows_and_what_keeps_the_targets_come_first():
    record = planned(CASES["one GPU for a high rate"])
    kinds = [miss.kind for miss in record.misses]
    assert kinds[:2] == ["within the purchase limits", "keeps the targets"]
    within, keeps = record.misses[:2]
    assert within.option.gpus == 1
    assert within.misses[0].startswith("rate ")
    assert within.option.rate_per_s < 60.0
    assert keeps.option.gpus > 1
    assert keeps.misses[0] == f"GPUs {keeps.option.gpus}, limit 1"


def test_a_quota_of_the_price_file_binds():
    rows = [o.model_copy(update={"quota_instances": 1}) for o in CATALOG.offers]
    few = replace(CATALOG, offers=tuple(rows))
    values = merged(
        BASE, {"traffic": {"rate_per_s": 400.0}, "purchase": {"accelerators": ("l40s",)}}
    )
    record = plan(Slo.model_validate(values), catalog=few, space="quick", verify=False)
    assert record.options == ()
    (needed,) = (one for one in record.relaxations if "quota" in one.limit)
    assert needed.asked == 1
    assert needed.needed == needed.option.instances
    assert any("quota 1 (" in text for miss in record.misses for text in miss.misses)


def test_what_no_memory_holds_is_said_with_its_figures():
    changes = {"model": "meta-llama/Llama-3.1-405B", "purchase": {"accelerators": ["l4"]}}
    record = planned(changes)
    assert (record.options, record.misses) == ((), ())
    assert record.obstacle.startswith("memory: of all layouts ")
    assert "of 22.5 GiB a GPU" in record.obstacle


@pytest.mark.parametrize("target", ["ttft_p99_ms", "e2e_p90_ms"])
def test_where_nothing_runs_a_target_on_any_percentile_is_answered(target):
    asked = {"slo": {target: 800.0}, "speculation": {"methods": ("mtp",)}}
    values = BASE | asked | {"purchase": {"accelerators": ("l4",)}}
    record = plan(Slo.model_validate(values), catalog=CATALOG, space="quick", verify=False)
    assert record.obstacle.startswith("no engine of the search runs this model")


@pytest.mark.parametrize(
    ("longest", "held", "request_named"),
    [(9e8, 1e3, "the longest request (900000000 tokens)"),
     (1e3, 9e8, "the mean of the requests held at a time (900000000 tokens)")],
    ids=["the longest alone", "those that are held"],
)  # fmt: skip
def test_the_request_that_does_not_fit_is_named_with_what_it_needs(longest, held, request_named):
    asked = Slo.model_validate(merged(BASE, {"purchase": {"accelerators": ("l4",)}}))
    model = find_architecture(asked.model)
    offers = allowed_offers(CATALOG, asked.purchase, CATALOG.newest_seen)
    problem = setting(asked, CATALOG, read_space("quick"), model, offers).problem
    workload = replace(problem.demand.workload, context_end=held)
    demand = replace(problem.demand, longest=longest, workload=workload)
    told = shortage(replace(problem, demand=demand))
    assert request_named in told
    # By hand: 32 layers x 8 heads x 128 x 2 = 64 Ki values a token, of 1 byte.
    assert f"needs {9e8 * 65536 / 2**30:.3g} GiB" in told


def test_hardware_that_no_engine_runs_on_is_said():
    values = merged(BASE, {"purchase": {"accelerators": ("tpu-v6e",)}})
    asked = Slo.model_validate(values | {"engines": ("vllm",)})
    found = plan(asked, catalog=CATALOG, space="quick", verify=False)
    assert found.obstacle == "" or "no engine of the search runs" in found.obstacle


def test_misses_are_on_different_accelerators_and_the_nearest_comes_first():
    record = planned(CASES["both targets out of reach"])
    chips = [miss.option.accelerator for miss in record.misses]
    assert len(set(chips)) == len(chips) > 1
    excess = [miss.excess for miss in record.misses]
    assert excess == sorted(excess)


def test_a_miss_says_how_far_it_is():
    for miss in planned(CASES["a budget of a dollar"]).misses:
        if miss.kind == "within the purchase limits":
            continue
        option = miss.option
        spent = option.money.usd_per_hour
        shares = [spent / 0.5, *(target.upper / target.limit for target in option.targets)]
        assert miss.excess == pytest.approx(max(shares), rel=1e-4)
        assert f"price {float(f'{spent:.3g}'):g} USD/h, limit 0.5" in miss.misses
        assert len(miss.misses) == sum(share > 1 for share in shares)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1307.2, "1310"), (1310.0, "1310"), (1310.4, "1320"), (0.98765, "0.988"), (64.0, "64")],
)
def test_a_proposed_limit_is_never_below_the_value(value, expected):
    assert _above(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(1307.2, "1310"), (0.98765, "0.988"), (123456.7, "123457")]
)
def test_values_are_told_with_three_digits(value, expected):
    assert _text(value) == expected
