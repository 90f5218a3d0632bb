"""What a plan says that it takes for granted."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from planner.catalog import load_catalog
from planner.select.selection import assumed
from planner.spec.accelerator import rests_on

CATALOG = load_catalog()


def option(accelerator, weights):
    price = SimpleNamespace(interruption_share=0.0, term="on_demand")
    return SimpleNamespace(
        accelerator=accelerator,
        weights=weights,
        gpus_per_replica=1,
        gpus=1,
        instances=1,
        speculation="off",
        money=SimpleNamespace(price=price),
    )


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        # The catalog guesses the mxfp4 rate of the B200 and the nvfp4 and mxfp4 rates of the B300.
        (("fp8", "bf16"), "exponential_tera_per_s."),
        (("mxfp4", "nvfp4"), "peak_tflops.mxfp4, exponential_tera_per_s."),
    ],
)
def test_only_formats_that_an_option_uses_are_called_assumed(weights, told):
    chosen = [option("b200-sxm", one) for one in weights]
    (note,) = assumed(CATALOG, chosen)
    assert note == f"{CATALOG.accelerators['b200-sxm'].name}: assumed, not verified: {told}"


def test_a_format_counts_only_on_the_accelerator_that_runs_it():
    notes = list(assumed(CATALOG, [option("b200-sxm", "mxfp4"), option("b300-sxm", "fp8")]))
    assert ["mxfp4" in note for note in notes] == [True, False]


def test_an_option_rests_on_bf16_whatever_its_weights():
    assert rests_on("peak_tflops.bf16", "nvfp4")
    assert rests_on("tdp_w", "nvfp4")
    assert not rests_on("peak_tflops.fp8", "nvfp4")
