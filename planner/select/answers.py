"""The archive's rows as columns, and which limits of slo.yaml each of them keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planner.candidates.demand import mean_lengths, metric_of, targets
from planner.cost import Bill, Quotes, amounts, cheapest
from planner.cost_owned import W_PER_KW, energy_kwh_per_mtok, mean_load, mean_w
from planner.model.arrays import Floats, Indices
from planner.model.queueing.state import (
    FEWEST_SLOTS,
    HIGHEST_UTILIZATION,
    HIGHEST_WAIT_PROBABILITY,
)
from planner.select.evidence import row_evidence
from planner.spec.archive import ClassArchive
from planner.spec.efficiency import Evidence
from planner.spec.slo import Slo

Mask = NDArray[np.bool_]

MARGIN_OF = {"ttft": "ttft", "tpot": "tpot", "itl": "tpot", "e2e": "e2e"}


@dataclass(frozen=True)
class Answers:
    """Every row of the archive, (n,).

    Attributes:
        place, row: Class archive and row in it.
        columns: The record's numeric columns by name; NaN = does not apply. ``run_upper_hours``
            is the length of an offline run with its margin [h].
        latency, upper: Predicted latencies [ms] without and with margin, by target key; infinity
            = without bound.
        evidence: How well each row's engine, accelerator and layout are known.
        gated: Rows beyond the gates of the formula, unless a simulation has checked them.
        simulated: Rows that a simulation has checked; their upper latencies are its.
    """

    place: Indices
    row: Indices
    columns: Mapping[str, Floats]
    latency: Mapping[str, Floats]
    upper: Mapping[str, Floats]
    evidence: tuple[Evidence, ...]
    gated: Mask
    simulated: Mask

    def __len__(self) -> int:
        return len(self.place)

    @cached_property
    def unvalidated(self) -> Mask:
        """Rows without measured evidence."""
        return np.array([known == "unvalidated" for known in self.evidence], dtype=bool)


NUMERIC = (
    "instances",
    "gpus",
    "replicas",
    "output_tokens_per_s",
    "capacity_tokens_per_s",
    "utilization",
    "wait_probability",
    "slots",
    "run_hours",
    "loss_objective",
    "loss_p90",
    "power_w",
)
RUN = "e2e"
"""Metric whose margin the length of an offline run takes: the time of the whole."""
STANDARD = tuple(f"{m}_p{share}_ms" for m in ("ttft", "tpot", "e2e") for share in (50, 95))


def answers(archives: Sequence[ClassArchive]) -> Answers:
    """Return the rows of all classes as columns."""
    counts = [len(archive.rows.engine) for archive in archives]
    further = list(archives[0].rows.further_ms) if archives else []
    latency = {
        **{k: _joined([getattr(a.rows, k) for a in archives], np.inf) for k in STANDARD},
        **{k: _joined([a.rows.further_ms[k] for a in archives], np.inf) for k in further},
    }
    columns = {k: _joined([getattr(a.rows, k) for a in archives], np.nan) for k in NUMERIC}
    factors = {metric: _factors(archives, metric) for metric in MARGIN_OF}
    columns["run_upper_hours"] = columns["run_hours"] * factors[RUN]
    wait = np.nan_to_num(columns["wait_probability"], nan=0.0)
    offline = ~np.isnan(columns["run_hours"])
    beyond = (columns["utilization"] > HIGHEST_UTILIZATION) | (wait > HIGHEST_WAIT_PROBABILITY)
    seen, checked = _simulated(archives, latency)
    return Answers(
        place=np.repeat(np.arange(len(archives)), counts),
        row=np.concatenate([np.arange(n) for n in counts] or [np.zeros(0, np.intp)]),
        columns=columns,
        latency=latency,
        upper={key: values * factors[metric_of(key)] for key, values in seen.items()},
        evidence=tuple(known for archive in archives for known in row_evidence(archive)),
        gated=~offline & ~checked & (beyond | (columns["slots"] < FEWEST_SLOTS)),
        simulated=checked,
    )


def _simulated(
    archives: Sequence[ClassArchive], latency: Mapping[str, Floats]
) -> tuple[dict[str, Floats], Mask]:
    """Return latencies with the simulated ones where there are any, and which rows those are."""
    seen = {key: values.copy() for key, values in latency.items()}
    rows = sum(len(archive.rows.engine) for archive in archives)
    checked, first = np.zeros(rows, dtype=bool), 0
    for archive in archives:
        for entry in archive.simulated:
            checked[first + entry.row] = True
            for key, value in entry.upper_ms.items():
                seen[key][first + entry.row] = np.inf if value is None else value
        first += len(archive.rows.engine)
    return seen, checked


def _joined(columns: Sequence[Sequence[float | None]], missing: float) -> Floats:
    values = np.concatenate([np.zeros(0), *(np.array(column, dtype=float) for column in columns)])
    return np.where(np.isnan(values), missing, values)


def _factors(archives: Sequence[ClassArchive], metric: str) -> Floats:
    """Return the margin of a metric for every row."""
    name = MARGIN_OF[metric]
    found: list[float] = []
    for archive in archives:
        margins = {m.generation: getattr(m, name) for m in archive.margins}
        found.extend(margins[generation] for generation in archive.rows.generation)
    return np.array(found, dtype=float)


@dataclass(frozen=True)
class Priced:
    """Answers with what they cost, (n,).

    Attributes:
        answers: The rows; offline runs as long as they take on what is bought: on capacity that
            is interrupted longer than in the archive.
        bill: Cheapest purchase.
        flagged: Whether that price carries a flag.
        money: USD per hour and per million tokens, by the name of the record's field.
        power: Power and energy, by the name of the record's field; infinity = unknown.
        uses: Share of each limit of slo.yaml that is used, by its key; above 1 = broken.
    """

    answers: Answers
    bill: Bill
    flagged: Mask
    money: Mapping[str, Floats]
    power: Mapping[str, Floats]
    uses: Mapping[str, Floats]

    def worst(self) -> Floats:
        """Return the largest share of any limit that each row uses; 0 where there is no limit."""
        shares = [np.zeros(len(self.answers)), *self.uses.values()]
        result: Floats = np.max(np.stack(shares), axis=0)
        return result


def priced(
    found: Answers, archives: Sequence[ClassArchive], quotes: Mapping[str, Quotes], slo: Slo
) -> Priced:
    """Return the rows with their cheapest purchase among the quotes of their class.

    Args:
        found: From ``answers(archives)``; not those of ``Priced``, whose runs are longer already.
        archives: The archive.
        quotes: Prices by hardware class id; a class without any cannot be bought.
        slo: Limits, and the mean rate that tokens are paid for.
    """
    nothing = Quotes((), ())
    instances, used = found.columns["instances"], time_use(found, slo)
    bills = [
        cheapest(quotes.get(a.hardware.id, nothing), instances[mine], used[mine])
        for a, mine in ((a, found.place == i) for i, a in enumerate(archives))
    ]
    bill = Bill.join(bills) if bills else cheapest(nothing, np.zeros(0))
    flags = {a.hardware.id: quotes.get(a.hardware.id, nothing).offers for a in archives}
    flagged = [
        offer >= 0 and bool(flags[archives[place].hardware.id][offer].flag)
        for place, offer in zip(found.place, bill.offer, strict=True)
    ]
    money = _money(found, bill, slo)
    power = _power(found, archives, bill, money, slo)
    found = _interrupted(found, bill)
    return Priced(
        answers=found,
        bill=bill,
        flagged=np.array(flagged, dtype=bool),
        money=money,
        power=power,
        uses=_uses(found, bill, power, slo),
    )


def time_use(found: Answers, slo: Slo) -> Floats:
    """Return the share of the deadline that runs take where nothing interrupts them, (n,)."""
    offline = slo.traffic.offline
    if offline is None:
        return np.zeros(len(found))
    return found.columns["run_upper_hours"] / offline.deadline_hours


def _interrupted(found: Answers, bill: Bill) -> Answers:
    """Return rows whose offline runs take what interruptions and boots add."""
    names = ("run_hours", "run_upper_hours")
    longer = {name: found.columns[name] / (1.0 - bill.lost) for name in names}
    return replace(found, columns={**found.columns, **longer})


def _money(found: Answers, bill: Bill, slo: Slo) -> dict[str, Floats]:
    columns = found.columns
    output = columns["output_tokens_per_s"]
    prompt, answer = mean_lengths(slo)
    both = 1.0 + prompt / answer
    rate, mean = slo.traffic.rate_per_s, slo.traffic.average_rate_per_s
    share = mean / rate if rate and mean else 1.0
    paid = amounts(
        bill.usd_per_hour, output * share, output * share * both, columns["capacity_tokens_per_s"]
    )
    names = ("usd_per_hour", "usd_per_mtok_output", "usd_per_mtok_total")
    money = {name: getattr(paid, name) for name in (*names, "usd_per_mtok_full")}
    job = bill.usd_per_hour * columns["run_hours"]
    return {**money, "mean_utilization": paid.mean_utilization, "usd_per_job": job}


def _power(
    found: Answers,
    archives: Sequence[ClassArchive],
    bill: Bill,
    money: Mapping[str, Floats],
    slo: Slo,
) -> dict[str, Floats]:
    draws = [archive.hardware.draw for archive in archives]
    load, owned = mean_load(slo), slo.purchase.owned
    mean = np.array([np.inf if d is None else mean_w(d, load) for d in draws])
    rated = np.array([np.inf if d is None else d.rated_w for d in draws])
    gpus = _gpus(found, bill)
    watts = gpus * mean[found.place]
    pue = (owned.pue if owned else None) or 1.0
    tokens = money["mean_utilization"] * found.columns["capacity_tokens_per_s"]
    return {
        "mean_kw": watts / W_PER_KW,
        "rated_kw": gpus * rated[found.place] / W_PER_KW,
        "kwh_per_mtok_output": energy_kwh_per_mtok(watts, tokens, pue),
    }


def _gpus(found: Answers, bill: Bill) -> Floats:
    """Return the GPUs bought, (n,)."""
    return found.columns["gpus"] / found.columns["instances"] * bill.instances


def _uses(found: Answers, bill: Bill, power: Mapping[str, Floats], slo: Slo) -> dict[str, Floats]:
    # An archive without rows names none of the percentiles beyond p50 and p95.
    upper = found.upper if len(found) else dict.fromkeys((t.key for t in targets(slo)), np.zeros(0))
    uses = {target.key: upper[target.key] / target.limit for target in targets(slo)}
    quality, purchase, offline = slo.quality, slo.purchase, slo.traffic.offline
    if offline is not None:
        uses["deadline_hours"] = found.columns["run_upper_hours"] / offline.deadline_hours
    else:
        # Headroom stands for what only a simulation can tell.
        most = np.where(found.simulated, 1.0, slo.headroom)
        uses["headroom"] = found.columns["utilization"] / most
    if quality.max_loss_percent is not None:
        loss = np.maximum(found.columns["loss_p90"], 0.0)
        limit = quality.max_loss_percent
        uses["max_loss_percent"] = loss / limit if limit else np.where(loss > 0, np.inf, 0.0)
    if purchase.budget_usd_per_hour is not None:
        uses["budget_usd_per_hour"] = bill.usd_per_hour / purchase.budget_usd_per_hour
    if purchase.max_gpus is not None:
        uses["max_gpus"] = _gpus(found, bill) / purchase.max_gpus
    if purchase.max_power_kw is not None:
        uses["max_power_kw"] = power["rated_kw"] / purchase.max_power_kw
    if bill.quota_use.any():
        uses["quota_instances"] = bill.quota_use
    return uses
