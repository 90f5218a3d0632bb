"""Plans for traffic as it is: daily cycles, several kinds of requests, traces, spares."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from planner.candidates.demand import (
    context_quantile,
    kinds,
    mean_lengths,
    targets,
)
from planner.commands.plan import plan
from planner.errors import InputError
from planner.report import FORMATS
from planner.search.setup import reach_of
from planner.select.verification import Requests, Wanted, of_kind
from planner.spec.slo import Slo
from tests.commands.small_plans import small_plan
from tests.search.problems import catalog

BASE = {
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "traffic": {
        "rate_per_s": 20.0,
        "prompt_tokens": {"p50": 500, "p95": 1500},
        "output_tokens": {"p50": 150, "p95": 400},
    },
    "slo": {"ttft_p95_ms": 600, "tpot_p95_ms": 30, "confidence": 0.5},
    "purchase": {"accelerators": ("l40s", "h100-sxm"), "allow_unvalidated": True},
}
CLASSES = (
    {
        "name": "chat",
        "share": 0.8,
        "prompt_tokens": {"p50": 400, "p95": 1200},
        "output_tokens": {"p50": 150, "p95": 400},
        "slo": {"ttft_p95_ms": 500, "tpot_p95_ms": 30},
    },
    {
        "name": "summarization",
        "share": 0.2,
        "prompt_tokens": {"p50": 6000, "p95": 9000},
        "output_tokens": {"p50": 200, "p95": 300},
        "slo": {"ttft_p95_ms": 3000},
    },
)


def an_slo(traffic: dict, **rest) -> Slo:
    return Slo.model_validate({**BASE, "traffic": {**BASE["traffic"], **traffic}, **rest})


def mixed_slo(**rest) -> Slo:
    traffic = {"rate_per_s": 10.0, "classes": CLASSES}
    return Slo.model_validate({**BASE, "traffic": traffic, **rest})


def test_each_class_has_its_own_targets_and_those_of_the_file_where_it_has_none():
    slo = Slo.model_validate(
        {
            **BASE,
            "traffic": {
                "rate_per_s": 1.0,
                "classes": (CLASSES[0], {k: v for k, v in CLASSES[1].items() if k != "slo"}),
            },
        }
    )
    got = {target.key: target.limit for target in targets(slo)}
    assert got == {
        "chat.ttft_p95_ms": 500,
        "chat.tpot_p95_ms": 30,
        "summarization.ttft_p95_ms": 600,
        "summarization.tpot_p95_ms": 30,
    }


def test_means_and_contexts_are_those_of_all_classes_together():
    slo, random = mixed_slo(), np.random.default_rng(1)
    which = random.random(200_000) < 0.8
    ranks = random.random((2, len(which)))
    chat, summary = kinds(slo)

    def drawn(lengths, rank):
        # Log-normal by hand.
        return lengths.median * np.exp(lengths.sigma * _normal(rank))

    prompt = np.where(which, drawn(chat.prompt, ranks[0]), drawn(summary.prompt, ranks[0]))
    output = np.where(which, drawn(chat.output, ranks[1]), drawn(summary.output, ranks[1]))
    assert mean_lengths(slo) == pytest.approx((prompt.mean(), output.mean()), rel=0.01)
    for share in (0.5, 0.95):
        expected = np.quantile(prompt + output, share)
        assert context_quantile(slo, share) == pytest.approx(expected, rel=0.02)


def _normal(rank):
    from statistics import NormalDist

    return np.vectorize(NormalDist().inv_cdf)(rank)


def test_a_plan_for_two_classes_meets_the_targets_of_both():
    record = plan(mixed_slo(), space="quick")
    assert record.picks
    by_id = {option.id: option for option in record.options}
    for check in record.verification:
        keys = {entry.key for entry in check.latencies}
        assert {"chat.ttft_p95_ms", "summarization.ttft_p95_ms"} <= keys
    cheapest = by_id[record.picks["cheapest"]]
    assert {target.key for target in cheapest.targets} == {
        "chat.ttft_p95_ms",
        "chat.tpot_p95_ms",
        "summarization.ttft_p95_ms",
    }
    assert all(target.holds for target in cheapest.targets)
    text = FORMATS["table"](record, width=120)
    assert "summarization, 20 %" in text


def test_a_tighter_target_of_one_class_alone_costs_no_less():
    slow = plan(mixed_slo(), space="quick", verify=False)
    tight = ({**CLASSES[0], "slo": {"ttft_p95_ms": 150, "tpot_p95_ms": 12}}, CLASSES[1])
    traffic = {"rate_per_s": 10.0, "classes": tight}
    quick = plan(Slo.model_validate({**BASE, "traffic": traffic}), space="quick", verify=False)
    assert cost(quick) > cost(slow)


def cost(record):
    by_id = {option.id: option for option in record.options}
    return by_id[record.picks["cheapest"]].money.usd_per_mtok_output


def test_drawn_requests_keep_the_shares_and_lengths_of_their_class():
    drawn = Requests(mixed_slo(), seed=4).draw(8, 20_000)
    assert np.mean(drawn.kind == 0) == pytest.approx(0.8, abs=0.01)
    for number, (prompt, output) in enumerate(((400, 150), (6000, 200))):
        mine = drawn.kind == number
        assert np.median(drawn.arrivals.prompt[mine]) == pytest.approx(prompt, rel=0.05)
        assert np.median(drawn.arrivals.output[mine]) == pytest.approx(output, rel=0.05)


def test_a_percentile_of_one_class_leaves_the_others_out():
    from tests.select.test_verification import a_run

    run = a_run(np.where(np.arange(1000) % 2 == 0, 1.0, 9.0))
    kind = np.arange(1000) % 2
    seen = of_kind([run], [kind], Wanted("a.ttft_p95_ms", "ttft", 0.95, kind=0))
    assert (seen.value, seen.upper) == (1.0, 1.0)
    assert of_kind([run], [kind], Wanted("ttft_p95_ms", "ttft", 0.95)).value == 9.0


def test_two_classes_of_one_name_are_refused():
    traffic = {"rate_per_s": 1.0, "classes": ({**CLASSES[0], "share": 0.5},) * 2}
    with pytest.raises(ValueError, match="two are named 'chat'"):
        Slo.model_validate({**BASE, "traffic": traffic})


def test_a_load_profile_is_sized_for_its_peak_and_paid_for_by_its_mean():
    # 12 hours at the peak, 12 at half of it: the mean is 3/4.
    profile = (1.0,) * 12 + (0.5,) * 12
    flat = plan(an_slo({}), space="quick", verify=False)
    daily = plan(an_slo({"load_profile": profile}), space="quick", verify=False)
    assert daily.picks["cheapest"] == flat.picks["cheapest"]
    assert cost(daily) == pytest.approx(cost(flat) / 0.75, rel=1e-5)


def test_spare_replicas_are_bought_beside_those_that_hold_the_targets():
    slo = an_slo({}, purchase={**BASE["purchase"], "spare_replicas": 1})
    record = plan(slo, space="quick")
    by_id = {option.id: option for option in record.options}
    for check in record.verification:
        if check.option not in by_id:
            continue
        option = by_id[check.option]
        assert option.spare_replicas == 1
        # What was simulated is the fleet with its spare down.
        assert check.trials[-1].replicas == option.replicas or check.holds
        assert option.gpus >= (option.replicas + 1) * option.gpus_per_replica


def a_bursty_trace(path, seed=0):
    """Ten minutes of chats at 4/s, every third minute at 12/s."""
    random = np.random.default_rng(seed)
    minutes = [12.0 if minute % 3 == 2 else 4.0 for minute in range(10)]
    times = [60.0 * i + np.sort(random.random(int(60 * r))) * 60 for i, r in enumerate(minutes)]
    rows = [
        f"{time:.3f},{int(prompt)},{int(output)}"
        for time in np.concatenate(times)
        for prompt, output in [np.exp(random.normal([6.2, 5.0], [0.6, 0.5]))]
    ]
    path.write_text("arrival_s,prompt_tokens,output_tokens\n" + "\n".join(rows) + "\n")


def test_faults_of_a_trace_and_unknown_names_are_told_together(tmp_path):
    (tmp_path / "a.csv").write_text("arrival_s,prompt_tokens,output_tokens\n0,abc,3\n1,5,zzz\n")
    file = tmp_path / "slo.yaml"
    file.write_text(
        "model: meta-llama/Llama-3.1-8B-Instructt\ntraffic:\n  trace: a.csv\n"
        "slo: {tpot_p95_ms: 60}\nengines: [vlllm]\n"
    )
    with pytest.raises(InputError) as caught:
        plan(file)
    assert caught.value.source == str(file)
    told = [(fault.where, fault.key) for fault in caught.value.faults]
    trace = ("line 3", "traffic.trace")
    assert told == [("line 1", "model"), trace, trace, ("line 5", "engines[0]")]
    first = caught.value.faults[1].message
    assert first.startswith(f"{tmp_path / 'a.csv'}: line 2  prompt_tokens: 'abc' is not a number")


def test_a_trace_is_replayed_for_the_picks_beside_both_formulas(tmp_path):
    a_bursty_trace(tmp_path / "trace.csv")
    (tmp_path / "slo.yaml").write_text(
        "model: meta-llama/Llama-3.1-8B-Instruct\n"
        "traffic: {trace: trace.csv}\n"
        "slo: {ttft_p95_ms: 600, tpot_p95_ms: 30, confidence: 0.5}\n"
        "purchase: {accelerators: [l40s, h100-sxm], allow_unvalidated: true}\n"
    )
    record = plan(tmp_path / "slo.yaml", space="quick")
    trace = record.inputs.trace
    assert (trace.requests, trace.window_s) == (3840, 60.0)
    assert trace.peak_rate_per_s == pytest.approx(12.0, rel=0.02)
    assert trace.mean_rate_per_s == pytest.approx(6.4, rel=0.02)
    assert record.picks
    for check in record.verification:
        assert check.requests == 3840
        for entry in check.latencies:
            assert entry.upper_ms == entry.simulated_ms
            # Each window in its own steady state is within a factor of what happened.
            assert 0.5 <= entry.windows_ms / entry.simulated_ms <= 2.0
    assert any("busiest 60 s" in note for note in record.assumptions)
    text = FORMATS["table"](record, width=120)
    assert "trace trace.csv: 3,840 requests" in text
    lines = [line for line in text.splitlines() if "TTFT" in line]
    labels = [line.strip("│ ").split("│")[0].strip() for line in lines]
    first = labels.index("TTFT by windows")
    assert labels[first + 1] == "TTFT replayed"
    check = next(x for x in record.verification if x.option == record.picks["cheapest"])
    seen = next(entry for entry in check.latencies if entry.key == "ttft_p95_ms")
    for row, value in ((first, seen.windows_ms), (first + 1, seen.simulated_ms)):
        shown = lines[row].split("│")[2].split("/")[1].removesuffix("ms ").strip()
        assert float(shown.removesuffix(" ms")) == pytest.approx(value, rel=0.01)


def test_requests_of_a_trace_beyond_what_is_accepted_are_cut(tmp_path):
    a_bursty_trace(tmp_path / "trace.csv")
    (tmp_path / "slo.yaml").write_text(
        "model: meta-llama/Llama-3.1-8B-Instruct\n"
        "traffic: {trace: trace.csv, max_context_tokens: 900}\n"
        "slo: {ttft_p95_ms: 600, tpot_p95_ms: 30, confidence: 0.5}\n"
        "purchase: {accelerators: [h100-sxm], allow_unvalidated: true}\n"
    )
    rows = (tmp_path / "trace.csv").read_text().splitlines()[1:]
    long = sum(sum(int(cell) for cell in row.split(",")[1:]) > 900 for row in rows)
    record = plan(tmp_path / "slo.yaml", space="quick")
    assert any(
        f"{long:,} of 3,840 requests are longer than 900 tokens" in note
        for note in record.assumptions
    )
    # The same lengths in all three: what is simulated lies near the formula over windows.
    for check in record.verification:
        for entry in check.latencies:
            assert 0.5 <= entry.windows_ms / entry.simulated_ms <= 2.0


def test_headroom_follows_the_length_of_the_outputs_unless_the_file_states_it():
    short = {**BASE["traffic"], "output_tokens": 50}
    assert plan(an_slo(short), space="quick", verify=False).inputs.slo["headroom"] == 0.7
    assert plan(an_slo({}), space="quick", verify=False).inputs.slo["headroom"] == 0.8
    asked = an_slo(short, headroom=0.5)
    assert plan(asked, space="quick", verify=False).inputs.slo["headroom"] == 0.5


def test_autoscaling_is_priced_beside_the_static_fleet():
    # Twelve hours at the peak, twelve at a tenth of it.
    profile = (1.0,) * 12 + (0.1,) * 12
    purchase = {**BASE["purchase"], "accelerators": ("l40s",)}
    busy = {"rate_per_s": 60.0, "load_profile": profile}
    slo = an_slo(busy, autoscale={"boot_minutes": 30}, purchase=purchase)
    record = plan(slo, space="quick")
    scaled = [option for option in record.options if option.money.autoscaled is not None]
    assert scaled
    for option in scaled:
        fleet = option.money.autoscaled
        by_hour = fleet.replicas_by_hour
        assert max(by_hour) == by_hour[0] <= option.replicas
        assert len(set(by_hour[:12])) == len(set(by_hour[12:])) == 1
        assert by_hour[12] <= option.replicas
        assert fleet.usd_per_hour <= option.money.usd_per_hour * (1 + 1e-6)
    cheapest = next(o for o in record.options if o.id == record.picks["cheapest"])
    fleet, price = cheapest.money.autoscaled, cheapest.money.price.usd_per_instance_hour
    assert fleet.replicas_by_hour[0] == cheapest.replicas
    per_instance = cheapest.gpus // cheapest.instances // cheapest.gpus_per_replica
    assert per_instance >= 1
    day, night = (-(-fleet.replicas_by_hour[hour] // per_instance) for hour in (0, 12))
    # By hand: 12 h of each, and half an hour of boot for every instance that comes by day.
    paid = 12 * (day + night) + 0.5 * (day - night)
    assert fleet.usd_per_hour == pytest.approx(paid * price / 24, rel=1e-5)
    mean = cheapest.output_tokens_per_s * 0.55
    assert fleet.usd_per_mtok_output == pytest.approx(
        fleet.usd_per_hour / (mean * 3600 / 1e6), rel=1e-4
    )
    assert "autoscaled" in FORMATS["table"](record, width=120)


def test_a_longer_boot_never_makes_autoscaling_cheaper():
    profile = tuple(1.0 + np.sin(np.arange(24) / 24 * 2 * np.pi) * 0.8)

    def price(boot: float) -> dict[str, float]:
        traffic = {"rate_per_s": 60.0, "load_profile": profile}
        slo = an_slo(traffic, autoscale={"boot_minutes": boot})
        options = plan(slo, space="quick", verify=False).options
        return {o.id: o.money.autoscaled.usd_per_hour for o in options if o.money.autoscaled}

    short, long = price(1), price(120)
    assert short
    assert short.keys() == long.keys()
    assert all(short[key] <= long[key] for key in short)


def test_without_an_autoscaler_no_price_for_one_is_given():
    record = plan(an_slo({"load_profile": (1.0,) * 24}), space="quick", verify=False)
    assert all(option.money.autoscaled is None for option in record.options)


def test_the_search_looks_as_far_as_the_most_patient_class_allows():
    patient = ({**CLASSES[0]}, {**CLASSES[1], "slo": {"ttft_p95_ms": 3000, "tpot_p99_ms": 50}})
    slo = Slo.model_validate({**BASE, "traffic": {"rate_per_s": 1.0, "classes": patient}})
    assert (reach_of(slo, 1.5).ttft, reach_of(slo, 1.5).tpot) == pytest.approx((4.5, 0.075))
    # Summaries without a limit on TPOT may decode as slowly as they like.
    assert reach_of(mixed_slo(), 1.5).tpot == np.inf
    assert reach_of(an_slo({}), 2.0).ttft == pytest.approx(1.2)


def test_a_load_that_no_allowed_number_of_replicas_carries_is_said():
    made = small_plan(catalog(), an_slo({"rate_per_s": 900_000.0}))
    assert (made.options, made.misses) == ((), ())
    assert "none carries traffic.rate_per_s 900000" in made.obstacle


@pytest.mark.parametrize(("own", "refused"), [(0.99, True), (0.9, False), (0.8, False)])
def test_a_confidence_of_a_class_alone_is_refused(own, refused):
    whole = {"ttft_p95_ms": 600, "confidence": 0.9}
    classes = [{**CLASSES[0], "slo": {"ttft_p95_ms": 500, "confidence": own}}, *CLASSES[1:]]
    data = {**BASE, "traffic": {"rate_per_s": 10.0, "classes": classes}, "slo": whole}
    if not refused:
        assert Slo.model_validate(data).targets.confidence == 0.9
        return
    with pytest.raises(ValidationError, match=r"classes\[0\].slo.confidence: one confidence"):
        Slo.model_validate(data)
