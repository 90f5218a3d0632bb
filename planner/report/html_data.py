"""What the page shows, as plain data: numbers for the charts, texts for the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.report import price_words, words
from planner.report.pack import Pack
from planner.report.statements import firm_words, statements
from planner.select.firmness import Effect, Firmness
from planner.spec.option import Option
from planner.units import HOURS_PER_MONTH, HOURS_PER_YEAR

Data = dict[str, Any]


def page_data(pack: Pack) -> Data:
    """Return the data of the page."""
    record = pack.record
    first, *rest = words.asked(record)
    model = str(record.inputs.slo["model"])
    return {
        "title": model,
        "asked": [
            first.removeprefix(f"{model}, "),
            *rest,
            f"prices as of {record.inputs.as_of}; {words.found(record)}",
        ],
        "picks": list(pack.picked()),
        "options": [_option(pack, option) for option in _distinct(pack)],
        "nothing": words.nothing(record),
        "misses": [
            f"{words.parallelism(m.option)} on {words.hardware(m.option)} misses"
            f" {'; '.join(m.misses)}. Would do: {', or '.join(m.would_do) or '-'}"
            for m in record.misses
        ]
        + [
            *words.alone(record),
            *([record.obstacle] if record.obstacle else []),
        ],
        "prices": _prices(pack),
        "assumptions": [list(texts) for texts in statements(pack)],
        "firm_notes": list(pack.notes),
        "firmness": None if pack.firmness is None else _firmness(pack, pack.firmness),
    }


def _distinct(pack: Pack) -> list[Option]:
    return list({option.id: option for option in reversed(pack.listed())}.values())[::-1]


def _option(pack: Pack, o: Option) -> Data:
    on_front = {option.id for option in pack.record.options}
    return {
        "id": o.id,
        "picks": pack.picked().get(o.id, []),
        "trusted": o.id in on_front,
        "accelerator_name": o.accelerator_name,
        "provider": o.provider,
        "hardware": words.hardware(o),
        "bought": words.instance(o),
        "engine": words.engine(o),
        "weights": o.weights,
        "kv": o.kv,
        "layout": words.parallelism(o),
        "speculation": words.speculation(o),
        "hour": o.money.usd_per_hour,
        "month": None if o.run_hours else o.money.usd_per_hour * HOURS_PER_MONTH,
        "invoiced": words.invoiced(o),
        "job": None if o.money.usd_per_job is None else words.run(o),
        "mtok": o.money.usd_per_mtok_output,
        "ttft95": None if o.ttft is None else o.ttft.p95_ms,
        "tpot95": None if o.tpot is None else o.tpot.p95_ms,
        "run_hours": o.run_hours,
        "run": words.duration(o.run_hours),
        "lease": [f"{title.lower()} {text}" for title, text in price_words.lease(o)],
        "use": o.utilization,
        "mean_use": o.money.mean_utilization,
        "loss": o.quality.median,
        "quality": words.quality(o),
        "evidence": o.evidence,
        "flags": list(o.flags),
        "facts": [list(pair) for pair in _facts(o)],
        "memory": {
            "device": o.memory.device_gib,
            "weights": o.memory.weights_gib,
            "kv": o.memory.kv_pool_gib,
            "reserve": o.memory.reserve_gib,
            "unused": o.memory.unused_gib,
        },
        "time": _time(o),
        "simulated": pack.record.simulated(o),
        "targets": [target.model_dump() for target in o.targets],
    }


def _facts(o: Option) -> Iterator[tuple[str, str]]:
    m = o.money
    yield "Option", o.id
    yield "Buy", words.hardware(o)
    yield "From", words.instance(o)
    yield "Price", f"{words.money(m.price.quoted_usd_per_hour)}/h each; {words.price(o)}"
    if m.price.exchange is not None:
        yield "Listed", price_words.exchange(m.price)
    allowed = ", spot allowance included" if words.invoiced(o) else ""
    paid = f"{words.money(m.usd_per_hour)}{allowed}"
    yield "Per hour", "; ".join(filter(None, (paid, words.invoiced(o))))
    yield from price_words.lease(o)
    if o.run_hours is None:
        yield f"Per month ({HOURS_PER_MONTH:.0f} h)", price_words.over(o, HOURS_PER_MONTH)
        yield f"Per year ({HOURS_PER_YEAR:.0f} h)", price_words.over(o, HOURS_PER_YEAR)
    yield "Per Mtok output", f"{words.money(m.usd_per_mtok_output)} at the mean rate"
    yield "Per Mtok, prompt + output", words.money(m.usd_per_mtok_total)
    yield "Per Mtok output, full load", words.money(m.usd_per_mtok_full)
    if m.autoscaled is not None:
        yield "Per Mtok output, autoscaled", words.autoscaled(o)
    if m.owned is not None:
        parts = ((name, value) for name, value in m.owned.model_dump().items() if value)
        yield "Of which", ", ".join(f"{name} {words.money(value)}/h" for name, value in parts)
    if o.energy is not None:
        yield "Energy", words.energy(o.energy)
    if m.usd_per_job is not None:
        yield "The whole run", words.run(o)
    yield "Engine", words.engine(o)
    yield "Weights / KV cache", f"{o.weights} / {o.kv}"
    yield "Replicas", words.parallelism(o)
    yield "Batch limit", words.batch_limit(o, "sequence")
    yield "Speculation", words.speculation(o)
    busy = "in the busy hour" if o.run_hours is None else "while it runs"
    yield "Output", f"{words.number(o.output_tokens_per_s)} tokens/s {busy}"
    mean = f", mean {words.percent(m.mean_utilization)}" if o.run_hours is None else ""
    yield "Utilization", f"{words.use(o)}{mean}"
    yield "Quality loss", words.quality(o)
    yield "Evidence", words.EVIDENCE_WORDS[o.evidence]
    yield "Limit that binds", words.binding(o)
    if o.flags:
        yield "Cautions", words.cautions(o)


def _time(o: Option) -> Data | None:
    """Return the time of the median request [ms]: to its first token, and decoding after it.

    How much of the decoding is the speed of light follows from the share that the bound is of
    the median time per token.
    """
    if o.ttft is None or o.tpot is None or o.e2e is None:
        return None
    first = min(o.ttft.p50_ms, o.e2e.p50_ms)
    decoding = o.e2e.p50_ms - first
    bound = decoding * min(o.bound_tpot_ms / o.tpot.p50_ms, 1.0)
    return {"first": first, "bound": bound, "above": decoding - bound}


def _prices(pack: Pack) -> list[list[str]]:
    used = {o.money.price.offer: o.money.price for o in pack.listed()}
    return [
        [
            p.provider,
            p.instance_type,
            p.region,
            words.TERM_WORDS[p.term],
            words.money(p.quoted_usd_per_hour),
            price_words.exchange(p),
            f"{p.seen} ({p.seen_basis})",
            p.source,
            p.flag,
        ]
        for _, p in sorted(used.items())
    ]


def _firmness(pack: Pack, firmness: Firmness) -> Data:
    titles = pack.picked()
    offline = any(option.run_hours is not None for option in pack.record.options)
    return {
        "per": " for the run" if offline else "/h",
        "scenarios": [r.scenario for r in firmness.picks[0].regrets] if firmness.picks else [],
        "picks": [
            {
                "option": pick.option,
                "titles": ", ".join(titles[pick.option]),
                "now": _effect(pick.now),
                "bars": [
                    {
                        "driver": bar.driver,
                        "low_label": bar.low_label,
                        "high_label": bar.high_label,
                        "low": _effect(bar.low),
                        "high": _effect(bar.high),
                    }
                    for bar in pick.bars
                ],
                "words": list(firm_words(firmness, pick)),
                "regrets": [{"holds": r.holds, "usd": r.usd_per_hour} for r in pick.regrets],
            }
            for pick in firmness.picks
        ],
    }


def _effect(effect: Effect) -> Data:
    return {"mtok": effect.usd_per_mtok_output, "use": effect.use}
