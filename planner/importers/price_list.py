"""Cloud price lists in JSON: AWS offer files, Azure retail prices, or a plain list of rows.

Source: https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/price-changes.html;
https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.errors import InputError
from planner.files import CsvRow, Document, read_json
from planner.importers.price_chips import ChipWords, identify
from planner.importers.price_rows import (
    Draft,
    Imported,
    Known,
    PriceFile,
    Refusal,
    RefusedError,
    described,
    host_flag,
    number_of,
    price_of,
    settle,
)
from planner.importers.price_sheet import DECIMALS, Sheet, offers_of
from planner.importers.price_source import checked_date, seen_of, stamp
from planner.spec.offer import Term
from planner.units import HOURS_PER_YEAR

YEARS: Mapping[str, tuple[Term, int]] = {
    "1yr": ("reserved_1y", 1),
    "3yr": ("reserved_3y", 3),
    "1 year": ("reserved_1y", 1),
    "3 years": ("reserved_3y", 3),
}
PLAIN_AWS: Mapping[str, str] = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
}
"""Attributes of a plain instance; others are paid for beside it."""


@dataclass(frozen=True)
class Entry:
    """One price of a list, before it is checked.

    Attributes:
        line: Where it stands.
        instance, region: As the list names them.
        gpus: GPUs per instance; None = not said.
        vcpus, memory_gib: Of the host.
        term: Price term.
        hourly, upfront: Texts of the price per hour and of what is paid at the start.
        years: Length of a reserved term.
        currency: ISO 4217.
        fault: Why the entry is not for us; empty = it is.
    """

    line: int
    instance: str
    region: str
    gpus: float | None
    vcpus: float | None
    memory_gib: float | None
    term: Term
    hourly: str
    upfront: str
    years: int
    currency: str
    fault: str = ""


def read_price_list(file: PriceFile, known: Known) -> Imported:
    """Read a price list in JSON.

    Args:
        file: An AWS offer file (``products`` and ``terms``; its publication date counts unless
            ``seen`` is given), an answer of Azure's retail prices (``Items``), or a list of
            objects, or ``{"prices": [...]}``, read like a price sheet.
        known: What the catalog knows.

    Raises:
        InputError: The file is none of these, or nobody says when its prices were seen.
    """
    document = read_json(file.path)
    data = document.data
    top = data if isinstance(data, dict) else {}
    if isinstance(top.get("products"), dict) and isinstance(top.get("terms"), dict):
        published = str(top.get("publicationDate", ""))[:10]
        seen = checked_date(file.seen or published, str(file.path))
        writer = "AWS price list"
        common = stamp(file, seen, writer) | {"provider": file.provider or "aws"}
        return _settled(list(_aws(document, top)), known, common)
    if isinstance(top.get("Items"), tuple):
        writer = "Azure retail prices"
        seen = seen_of(file, writer)
        common = stamp(file, seen, writer) | {"provider": file.provider or "azure"}
        return _settled(list(_azure(document, top["Items"])), known, common)
    key = ("prices",) if "prices" in top else ()
    rows = top.get("prices", data)
    if not isinstance(rows, tuple) or not all(isinstance(row, dict) for row in rows):
        message = "no price list; it needs products and terms, Items, or a list of objects"
        raise InputError(str(file.path), [message])
    cells = tuple(
        CsvRow(document.line((*key, index)), {name: _text(value) for name, value in row.items()})
        for index, row in enumerate(rows)
    )
    header = tuple(dict.fromkeys(name for row in cells for name in row.values))
    return offers_of(Sheet(header, cells), file, known, "price list")


def _text(value: Any) -> str:
    return "" if value is None or isinstance(value, dict | tuple) else str(value).strip()


def _settled(entries: list[Entry], known: Known, common: Mapping[str, str]) -> Imported:
    drafts: list[Draft] = []
    refused: list[Refusal] = []
    for entry in entries:
        try:
            drafts.append(_draft(entry, known, common))
        except RefusedError as error:
            what = described(entry.instance, entry.region)
            refused.append(Refusal(entry.line, what, error.reason, error.detail))
    return settle(drafts, refused, len(entries))


def _draft(entry: Entry, known: Known, common: Mapping[str, str]) -> Draft:
    if entry.fault:
        raise RefusedError("other purchase option", entry.fault)
    provider, place = common["provider"], entry.instance
    name = known.instances.get((provider.casefold(), place.casefold()), ("", 0))[0]
    chip = identify(ChipWords(provider, place, name, count=entry.gpus), known)
    hourly = None if number_of(entry.hourly) == 0 else price_of(entry.hourly)
    upfront = None if number_of(entry.upfront) == 0 else price_of(entry.upfront)
    if hourly is None and upfront is None:
        raise RefusedError("no price", "no price; look it up")
    hours = HOURS_PER_YEAR * max(entry.years, 1)
    price = round((hourly or 0.0) + (upfront or 0.0) / hours, DECIMALS)
    values: dict[str, Any] = {
        **common,
        "instance_type": place,
        "region": entry.region,
        "accelerator": chip.accelerator.id,
        "gpus": chip.gpus,
        "vcpus": entry.vcpus,
        "memory_gib": entry.memory_gib,
        "currency": entry.currency,
        "upfront_share": round((upfront or 0.0) / hours / price, DECIMALS),
        "flag": chip.flag or host_flag(entry.vcpus, entry.memory_gib),
        "note": chip.note,
    }
    return Draft(entry.line, entry.term, price, values)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _aws(document: Document, top: Mapping[str, Any]) -> Iterator[Entry]:
    for kind, by_sku in _dict(top["terms"]).items():
        for sku, offers in _dict(by_sku).items():
            attributes = _dict(_dict(_dict(top["products"]).get(sku)).get("attributes"))
            for code, offer in _dict(offers).items():
                line = document.line(("terms", kind, sku, code))
                yield _aws_entry(line, kind, attributes, _dict(offer))


def _aws_entry(
    line: int, kind: str, attributes: Mapping[str, Any], offer: Mapping[str, Any]
) -> Entry:
    terms = _dict(offer.get("termAttributes"))
    term, years = YEARS.get(str(terms.get("LeaseContractLength")), ("on_demand", 0))
    amounts = {"Hrs": "", "Quantity": ""}
    currency, units = "USD", []
    for dimension in _dict(offer.get("priceDimensions")).values():
        unit = str(_dict(dimension).get("unit"))
        units.append(unit)
        for code, text in _dict(_dict(dimension).get("pricePerUnit")).items():
            currency, amounts[unit] = code, str(text)
    odd = [
        f"{name} is {attributes.get(name)}"
        for name, plain in PLAIN_AWS.items()
        if str(attributes.get(name, plain)) != plain
    ]
    odd += [f"priced per {unit}" for unit in units if unit not in ("Hrs", "Quantity")]
    if kind not in ("OnDemand", "Reserved") or (kind == "Reserved" and not years):
        odd.append(f"term {kind} {terms.get('LeaseContractLength', '')}".strip())
    if str(terms.get("OfferingClass", "standard")) != "standard":
        odd.append(f"offering class {terms['OfferingClass']}")
    memory = str(attributes.get("memory", "")).removesuffix("GiB").strip().replace(",", "")
    return Entry(
        line=line,
        instance=str(attributes.get("instanceType", "")),
        region=str(attributes.get("regionCode", "")),
        gpus=number_of(str(attributes.get("gpu", ""))),
        vcpus=number_of(str(attributes.get("vcpu", ""))),
        memory_gib=number_of(memory),
        term=term,
        hourly=amounts["Hrs"],
        upfront=amounts["Quantity"],
        years=years,
        currency=currency,
        fault=f"{'; '.join(odd)}: not a plain instance" if odd else "",
    )


def _azure(document: Document, items: tuple[Any, ...]) -> Iterator[Entry]:
    for index, item in enumerate(items):
        cells = {name: _text(value) for name, value in _dict(item).items()}
        names = f"{cells.get('skuName', '')} {cells.get('meterName', '')}"
        reserved = YEARS.get(cells.get("reservationTerm", "").casefold())
        term: Term = "spot" if "Spot" in names else "on_demand"
        term, years = reserved or (term, 0)
        price = cells.get("retailPrice", "")
        odd = [word for word in ("Low Priority", "Cloud Services") if word in names]
        odd += ["Windows"] if "Windows" in cells.get("productName", "") else []
        odd += [cells["type"]] if cells.get("type", "") in ("DevTestConsumption",) else []
        unit = cells.get("unitOfMeasure", "1 Hour")
        odd += [f"priced per {unit}"] if unit != "1 Hour" else []
        yield Entry(
            line=document.line(("Items", index)),
            instance=cells.get("armSkuName", ""),
            region=cells.get("armRegionName", ""),
            gpus=None,
            vcpus=None,
            memory_gib=None,
            term=term,
            # A reservation's price is that of the whole term, whatever its unit says.
            hourly="" if years else price,
            upfront=price if years else "",
            years=years,
            currency=cells.get("currencyCode", "USD"),
            fault=f"{'; '.join(odd)}: not a plain instance" if odd else "",
        )
