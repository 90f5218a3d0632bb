"""What is known badly never hides what is known better."""

import pytest

from planner import plan
from planner.spec.slo import Slo


def asked(**more) -> Slo:
    return Slo.model_validate(
        {
            "model": "Qwen/Qwen3-8B",
            "traffic": {
                "rate_per_s": 4,
                "prompt_tokens": {"p50": 1200, "p95": 5000},
                "output_tokens": {"p50": 150, "p95": 600},
            },
            "slo": {"ttft_p95_ms": 900, "tpot_p95_ms": 40},
            "purchase": {"providers": ("verda", "vast"), "accelerators": ("rtx4090",)},
            **more,
        }
    )


@pytest.mark.parametrize("space", ["quick", "default"])
def test_more_engines_never_leave_fewer_options_that_picks_may_rest_on(space):
    # SGLang is not validated on this accelerator, and faster by the formula.
    every = plan(asked(), space=space, verify=False)
    one = plan(asked(engines=("vllm",)), space=space, verify=False)
    assert one.options
    costs = [min(o.money.usd_per_mtok_output for o in p.options) for p in (every, one)]
    assert costs[0] <= costs[1]
