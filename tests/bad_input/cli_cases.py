"""Mistakes that only the whole program finds: names, prices, other people's files."""

from __future__ import annotations

from dataclasses import dataclass

from tests.bad_input.cases import GOOD, changed


@dataclass(frozen=True)
class CliCase:
    """A fault that only the whole program finds.

    Attributes:
        id: What is wrong.
        slo: Text of slo.yaml.
        files: Further files by name, written beside it.
        arguments: Further arguments; ``FOLDER``, here and in `slo`, is the folder of the
            files.
        fragments: What stderr must hold, beside exit code 2 and no traceback.
    """

    id: str
    slo: str = GOOD
    files: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()
    fragments: tuple[str, ...] = ()


_PRICES = (
    "provider,instance_type,accelerator,gpus,region,term,list_price_per_hour,currency,seen,"
    "seen_basis,source\n"
)


def _model(name: str) -> str:
    return changed("meta-llama/Llama-3.3-70B-Instruct", name)


def _price(accelerator: str, price: str, currency: str = "USD") -> tuple[tuple[str, str], ...]:
    row = f"acme,box-8,{accelerator},8,mars,on_demand,{price},{currency},2026-11-29,quote,quote\n"
    return (("prices.csv", _PRICES + row),)


_USE_PRICES = ("--prices", "FOLDER/prices.csv")

CLI_CASES = (
    CliCase(
        "unknown model",
        _model("meta-llama/Llama-3.3-70B-Instuct"),
        fragments=("model", "did you mean", "Llama-3.3-70B-Instruct"),
    ),
    CliCase(
        "unknown accelerator in the filter",
        GOOD + "purchase: {accelerators: [h100-smx]}\n",
        fragments=("h100-smx", "did you mean 'h100-sxm'?"),
    ),
    CliCase(
        "unknown engine",
        GOOD + "engines: [vlm]\n",
        fragments=("vlm", "did you mean 'vllm'?"),
    ),
    CliCase(
        "unknown format",
        GOOD + "quality: {measured: {fp9: 1}}\n",
        fragments=("fp9", "did you mean 'fp8'?"),
    ),
    CliCase(
        "unknown method",
        GOOD + "speculation: {methods: [off, ngrm]}\n",
        fragments=("ngrm", "did you mean 'ngram'?"),
    ),
    CliCase(
        "price of 0",
        files=_price("h100-sxm", "0"),
        arguments=_USE_PRICES,
        fragments=("prices.csv", "line 2", "list_price_per_hour", "must be above 0"),
    ),
    CliCase(
        "price missing",
        files=_price("h100-sxm", ""),
        arguments=_USE_PRICES,
        fragments=("prices.csv", "line 2", "list_price_per_hour"),
    ),
    CliCase(
        "price of NaN",
        files=_price("h100-sxm", "nan"),
        arguments=_USE_PRICES,
        fragments=("prices.csv", "line 2", "list_price_per_hour"),
    ),
    CliCase(
        "unknown currency",
        files=_price("h100-sxm", "30", "XYZ"),
        arguments=_USE_PRICES,
        fragments=("prices.csv", "line 2", "currency", "XYZ"),
    ),
    CliCase(
        "price of an unknown accelerator",
        files=_price("h100-smx", "30"),
        arguments=_USE_PRICES,
        fragments=("prices.csv", "line 2", "did you mean 'h100-sxm'?"),
    ),
    CliCase(
        "config.json that is no JSON",
        _model("FOLDER/config.json"),
        files=(("config.json", "{'hidden_size': 5}"),),
        fragments=("config.json", "line 1", "not valid JSON"),
    ),
    CliCase(
        "config.json without the keys",
        _model("FOLDER/config.json"),
        files=(("config.json", '{"model_type": "llama"}'),),
        fragments=("config.json", "hidden_size"),
    ),
    CliCase(
        "prices file missing",
        arguments=_USE_PRICES,
        fragments=("prices.csv", "no such file"),
    ),
)
