"""Sheets ``Options`` and ``Prices``: an option a row, resting on the price row it was quoted at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from planner.report import words
from planner.report.pack import Pack
from planner.report.xlsx_book import Book, Formula, Value, cell
from planner.spec.money import OwnedParts, Price
from planner.spec.offer import Offer
from planner.spec.option import Latency, Option
from planner.units import HOURS_PER_MONTH, HOURS_PER_YEAR, MILLION, SECONDS_PER_HOUR

PER_MTOK = f"{SECONDS_PER_HOUR:.0f}/{MILLION:.0f}"
PriceCells = Mapping[int, tuple[str, str]]
"""Row of the record's offers -> the cells of its price and of its allowance."""
WITH_ALLOWANCE = frozenset({"hour", "month", "year", "mtok", "mtok_total", "mtok_full", "scaled"})
"""Columns whose amounts are for the hours that do their work: on spot, more than the invoice."""


@dataclass(frozen=True)
class Places:
    """Where the figures of each option stand: option id -> column key -> cell."""

    cells: Mapping[str, Mapping[str, str]]
    first: int
    last: int


@dataclass(frozen=True)
class Column:
    """A column of ``Options``.

    Attributes:
        key: Name that formulas use.
        title: Header.
        kind: Number format.
        width: In characters.
        value: What the record says.
        formula: In Excel's syntax with {key} for the same row, {price_cell} and {lost_cell} for
            those of ``Prices``.
    """

    key: str
    title: str
    kind: str
    width: float
    value: Callable[[Option], Value]
    formula: str = ""


def _money(name: str) -> Callable[[Option], Value]:
    return lambda option: getattr(option.money, name)


def _field(name: str) -> Callable[[Option], Value]:
    return lambda option: getattr(option, name)


def _latency(metric: str, name: str) -> Callable[[Option], Value]:
    def get(option: Option) -> Value:
        latency: Latency | None = getattr(option, metric)
        return None if latency is None else float(getattr(latency, name))

    return get


def _rate(name: str) -> Callable[[Option], float]:
    """Return tokens per second that an amount per million tokens stands for."""

    def get(option: Option) -> float:
        per_mtok = float(getattr(option.money, name))
        return option.money.usd_per_hour / per_mtok * MILLION / SECONDS_PER_HOUR

    return get


def _over(hours: float) -> Callable[[Option], Value]:
    """Return the price of so many hours; None = a job that ends pays for no month."""
    return lambda o: o.money.usd_per_hour * hours if o.run_hours is None else None


def _invoiced_over(hours: float) -> Callable[[Option], Value]:
    """Return what the invoice says of so many hours; None = a job, or all hours do their work."""

    def get(option: Option) -> Value:
        paid = option.run_hours is None and option.money.price.interruption_share
        return option.money.invoiced_usd_per_hour * hours if paid else None

    return get


def _scaled(option: Option) -> Value:
    scaled = option.money.autoscaled
    return None if scaled is None else scaled.usd_per_mtok_output


def _scaled_share(option: Option) -> Value:
    """Return what a fleet that follows the load costs of one that does not."""
    scaled = option.money.autoscaled
    if scaled is None:
        return None
    return scaled.usd_per_mtok_output / option.money.usd_per_mtok_output


def _part(of: str, name: str) -> Callable[[Option], Value]:
    """Return a figure of the owned hardware's price, or of the energy; None = there is none."""

    def get(option: Option) -> Value:
        whole = option.money.owned if of == "owned" else option.energy
        value: Value = getattr(whole, name, None)
        return value

    return get


def _lease(name: str) -> Callable[[Option], Value]:
    """Return a term of the price row; None = it states none."""
    return lambda option: getattr(option.money.price.lease, name, None) or None


def _least(option: Option) -> Value:
    lease = option.money.price.lease
    return lease.minimum_instances if lease and lease.minimum_instances > 1 else None


def _tightest(option: Option) -> Value:
    shares = [t.upper / t.limit if t.upper is not None else None for t in option.targets]
    known = [share for share in shares if share is not None]
    return max(known) if len(known) == len(shares) and known else None


def _latencies() -> tuple[Column, ...]:
    parts = (("p50_ms", "p50 [ms]"), ("p95_ms", "p95 [ms]"), ("p95_upper_ms", "p95, margin [ms]"))
    return tuple(
        Column(f"{metric}_{name}", f"{metric.upper()} {title}", "ms", 11, _latency(metric, name))
        for metric in ("ttft", "tpot", "e2e")
        for name, title in parts
    )


COLUMNS: tuple[Column, ...] = (
    Column("id", "Option", "text", 12, _field("id")),
    Column("buy", "Buy", "text", 30, words.hardware),
    Column("provider", "Provider", "text", 12, _field("provider")),
    Column("sku", "Instance type", "text", 26, lambda o: o.money.price.instance_type),
    Column("region", "Region", "text", 14, _field("region")),
    Column("term", "Term", "text", 12, lambda o: words.TERM_WORDS[o.money.price.term]),
    Column("instances", "Instances", "count", 10, _field("instances")),
    Column("gpus", "GPUs", "count", 8, _field("gpus")),
    Column("price", "USD per instance-hour", "usd", 12,
           lambda o: o.money.price.quoted_usd_per_hour, "{price_cell}"),
    Column("lost", "Spot: share of the invoice that does no work", "share", 12,
           lambda o: o.money.price.interruption_share or None, "{lost_cell}"),
    Column("hour", "USD per hour", "usd", 12, _money("usd_per_hour"),
           "{instances}*{price}/(1-{lost})"),
    Column("invoiced", "USD per hour, invoiced", "usd", 12, _money("invoiced_usd_per_hour"),
           "{instances}*{price}"),
    Column("month", f"USD per month ({HOURS_PER_MONTH:.0f} h)", "usd_whole", 13,
           _over(HOURS_PER_MONTH), f"{{hour}}*{HOURS_PER_MONTH:.0f}"),
    Column("year", f"USD per year ({HOURS_PER_YEAR:.0f} h)", "usd_whole", 14,
           _over(HOURS_PER_YEAR), f"{{hour}}*{HOURS_PER_YEAR:.0f}"),
    Column("invoiced_month", f"USD per month ({HOURS_PER_MONTH:.0f} h), invoiced", "usd_whole", 13,
           _invoiced_over(HOURS_PER_MONTH), f"{{invoiced}}*{HOURS_PER_MONTH:.0f}"),
    Column("invoiced_year", f"USD per year ({HOURS_PER_YEAR:.0f} h), invoiced", "usd_whole", 14,
           _invoiced_over(HOURS_PER_YEAR), f"{{invoiced}}*{HOURS_PER_YEAR:.0f}"),
    Column("lease", "Shortest lease [h]", "one", 12, _lease("hours")),
    Column("upfront", "Paid upfront, share of the lease", "share", 12, _lease("upfront_share")),
    Column("due", "Due at once [USD]", "usd_whole", 14, _money("due_at_once_usd"),
           "{invoiced}*{lease}*{upfront}"),
    Column("committed", "Bound for, in all [USD]", "usd_whole", 14, _money("bound_usd"),
           "{invoiced}*{lease}"),
    Column("least", "Fewest instances sold", "count", 10, _least),
    Column("most", "Quota [instances]", "count", 10, _lease("quota_instances")),
    Column("mtok", "USD per Mtok output", "usd_mtok", 11, _money("usd_per_mtok_output"),
           f"{{hour}}/({{mean}}*{PER_MTOK})"),
    Column("mtok_total", "USD per Mtok, prompt + output", "usd_mtok", 12,
           _money("usd_per_mtok_total"), f"{{hour}}/({{total}}*{PER_MTOK})"),
    Column("mtok_full", "USD per Mtok output at full load", "usd_mtok", 12,
           _money("usd_per_mtok_full"), f"{{hour}}/({{capacity}}*{PER_MTOK})"),
    Column("job", "USD for the whole run", "usd", 12, _money("usd_per_job"), "{invoiced}*{run}"),
    Column("scaled_fleet", "Autoscaled, what", "text", 24, words.autoscaled_fleet),
    Column("scaled_share", "Autoscaled, share of the fixed price", "share", 12, _scaled_share),
    Column("scaled", "USD per Mtok output, autoscaled", "usd_mtok", 12,
           _scaled,
           "{mtok}*{scaled_share}"),
    *(
        Column(f"owned_{name}", f"Owned: {name}, as planned [USD/h]", "usd", 12,
               _part("owned", name))
        for name in OwnedParts.model_fields
    ),
    Column("mean", "Output tokens/s, mean", "one", 12, _rate("usd_per_mtok_output")),
    Column("total", "Prompt + output tokens/s, mean", "one", 12, _rate("usd_per_mtok_total")),
    Column("capacity", "Output tokens/s, capacity", "one", 12, _field("capacity_tokens_per_s")),
    Column("run", "Run [h]", "number", 9, _field("run_hours")),
    Column("mean_use", "Mean utilization", "share", 11, _money("mean_utilization"),
           "{mean}/{capacity}"),
    Column("use", "Utilization, busy hour", "share", 11, _field("utilization")),
    Column("engine", "Engine", "text", 14, words.engine),
    Column("weights", "Weights", "text", 10, _field("weights")),
    Column("kv", "KV cache", "text", 9, _field("kv")),
    Column("layout", "Replicas", "text", 16, words.parallelism),
    Column("max_num_seqs", "Batch limit", "count", 9, _field("max_num_seqs")),
    Column("token_budget", "Token budget", "count", 9, _field("token_budget")),
    Column("speculation", "Speculation", "text", 11, words.speculation),
    *_latencies(),
    Column("bound", "TPOT bound [ms]", "ms", 10, _field("bound_tpot_ms")),
    Column("tightest", "Tightest target, share used", "share", 12, _tightest),
    Column("loss", "Quality loss [%]", "number", 10, lambda o: o.quality.median),
    Column("loss_p90", "Quality loss, p90 [%]", "number", 10, lambda o: o.quality.p90),
    Column("grade", "Quality evidence", "text", 10, lambda o: o.quality.grade),
    Column("power", "Rated power, GPUs [W]", "count", 10, _field("power_w")),
    Column("rated_kw", "Rated power, servers [kW]", "number", 10, _part("energy", "rated_kw")),
    Column("mean_kw", "Mean draw, servers [kW]", "number", 10, _part("energy", "mean_kw")),
    Column("kwh", "kWh per Mtok output", "number", 10, _part("energy", "kwh_per_mtok_output")),
    Column("carbon", "g CO2e per Mtok output", "number", 10,
           _part("energy", "g_co2e_per_mtok_output")),
    Column("evidence", "Speed evidence", "text", 13, lambda o: words.EVIDENCE_WORDS[o.evidence]),
    Column("flags", "Cautions", "text", 18, lambda o: "; ".join(o.flags)),
    Column("binding", "Limit that binds", "text", 26, words.binding),
)  # fmt: skip
INDEX = {column.key: number for number, column in enumerate(COLUMNS, start=1)}
"""Column key -> column of the sheet; column 0 names the picks."""


def title_of(key: str, title: str, options: Sequence[Option]) -> str:
    """Return a title that says what an amount includes, and what a use is of."""
    if key == "use" and any(option.run_hours is not None for option in options):
        return "Share of the deadline used"
    spot = any(option.money.price.interruption_share for option in options)
    return f"{title}, spot allowance included" if spot and key in WITH_ALLOWANCE else title


def options_sheet(book: Book, pack: Pack, prices: PriceCells) -> Places:
    """Fill ``Options`` and return where each figure stands."""
    from xlsxwriter.utility import xl_rowcol_to_cell

    sheet, options = book.sheet("Options"), pack.listed()
    titles = (title_of(column.key, column.title, options) for column in COLUMNS)
    book.header("Options", 0, ["Picks", *titles])
    picked = pack.picked()
    places: dict[str, dict[str, str]] = {}
    for row, option in enumerate(options, start=1):
        names = {key: xl_rowcol_to_cell(row, number) for key, number in INDEX.items()}
        names["price_cell"], names["lost_cell"] = prices[option.money.price.offer]
        book.put("Options", (row, 0), ", ".join(picked.get(option.id, ())), style="bold")
        for number, column in enumerate(COLUMNS, start=1):
            value = column.value(option)
            calculated = column.formula and value is not None
            shown = Formula("=" + column.formula.format(**names), value) if calculated else value
            book.put("Options", (row, number), shown, column.kind)
        here = {key: cell("Options", row, number) for key, number in INDEX.items()}
        places.setdefault(option.id, here)
    for number, column in enumerate(COLUMNS, start=1):
        if all(column.value(option) in (None, "") for option in options):
            sheet.set_column(number, number, column.width, None, {"hidden": True})
    sheet.freeze_panes(1, 3)
    sheet.repeat_columns(0, 2)
    sheet.repeat_rows(0)
    if options:
        sheet.autofilter(0, 0, len(options), len(COLUMNS))
    return Places(places, 1, len(pack.record.options))


QUOTED, LOST = "USD per instance-hour", "Spot: share that does no work"
PRICE_TITLES: Sequence[tuple[str, float]] = (
    ("Provider", 14),
    ("Instance type", 30),
    ("Accelerator", 16),
    ("GPUs", 7),
    ("Region", 16),
    ("Term", 13),
    ("Currency", 9),
    ("List unit price", 12),
    ("Discount", 10),
    ("Contracted unit price", 12),
    ("USD per unit of currency", 12),
    (QUOTED, 14),
    (LOST, 12),
    ("Exchange rate of", 12),
    ("Exchange rate from", 26),
    ("Seen", 12),
    ("How the date is known", 26),
    ("Valid from", 12),
    ("Valid to", 12),
    ("Source", 44),
    ("Flag", 10),
    ("Note", 40),
)
PRICE_NOTE = (
    "Change a blue cell (price, discount, exchange rate, spot share): every amount in this"
    " workbook follows. Which options exist does not; run `plan reprice` for that."
)


def prices_sheet(book: Book, pack: Pack) -> PriceCells:
    """Fill ``Prices`` with the rows that options rest on; return the cells that amounts rest on."""
    used = {option.money.price.offer: option.money.price for option in pack.listed()}
    sheet = book.sheet("Prices")
    book.put("Prices", (0, 0), PRICE_NOTE, style="note")
    book.header("Prices", 1, [title for title, _ in PRICE_TITLES])
    for row, (number, price) in enumerate(sorted(used.items()), start=2):
        _price_row(book, row, pack.record.offers[number], price)
    sheet.freeze_panes(2, 2)
    sheet.repeat_rows(1)
    titles = [title for title, _ in PRICE_TITLES]
    columns = [titles.index(title) for title in (QUOTED, LOST)]
    return {
        number: (cell("Prices", row, columns[0]), cell("Prices", row, columns[1]))
        for row, number in enumerate(sorted(used), 2)
    }


def _price_row(book: Book, row: int, offer: Offer, price: Price) -> None:
    """Write one offer: its price as listed, the exchange rate, and both together."""
    rate = price.exchange
    factor = 1.0 if rate is None else rate.usd
    dated = ("", "") if rate is None else (rate.date.isoformat(), rate.source)
    line = row + 1
    effective = f'=IF(J{line}="",H{line}*(1-I{line}),J{line})*K{line}'
    days = [day.isoformat() if day else "" for day in (offer.valid_from, offer.valid_to)]
    cells: tuple[tuple[Value | Formula, str, str], ...] = (
        *((text, "text", "cell") for text in (offer.provider, offer.instance_type)),
        (offer.accelerator, "text", "cell"),
        (offer.gpus, "count", "cell"),
        *((text, "text", "cell") for text in (offer.region, words.TERM_WORDS[offer.term])),
        (offer.currency, "text", "cell"),
        (offer.list_price_per_hour, "usd", "input"),
        (offer.discount_share, "share", "input"),
        (offer.contracted_price_per_hour, "usd", "input"),
        (factor, "factor", "input"),
        (Formula(effective, price.quoted_usd_per_hour), "usd", "bold"),
        (price.interruption_share or None, "share", "input"),
        *((text, "text", "cell") for text in dated),
        (offer.seen, "text", "cell"),
        (offer.seen_basis, "text", "cell"),
        *((day, "text", "cell") for day in days),
        *((text, "text", "cell") for text in (offer.source, offer.flag, offer.note)),
    )
    for column, (value, kind, style) in enumerate(cells):
        book.put("Prices", (row, column), value, kind, style)
