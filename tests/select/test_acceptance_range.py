"""The range of the drafts' acceptance in the catalog."""

import numpy as np
import pytest

from planner.candidates.demand import slo_mixture
from planner.candidates.models import architecture_of
from planner.catalog import load_catalog
from planner.model.queueing import capacity
from planner.select.acceptance_range import STEADY, acceptance_range, moves
from planner.select.deploy import Scene
from planner.spec.slo import Slo
from tests.select.plans import archive

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
NGRAM = {
    "speculation": "ngram", "draft_tokens": 3, "accept_first": 0.6, "accept_decay": 1.0, "tp": 1,
}  # fmt: skip
"""As the catalog has it for retrieval: 0.6, between 0.4 and 0.75."""


def asked(rate=0.001, prompt=1.0, **changes):
    values = {
        "model": MODEL,
        "task": "rag",
        "traffic": {"rate_per_s": rate, "prompt_tokens": prompt, "output_tokens": 400.0},
        "slo": {"tpot_p95_ms": 60.0},
    }
    return Slo.model_validate(values | changes)


def scene(*rows):
    return Scene(load_catalog(), architecture_of(MODEL), (archive("h100-sxm", *rows),))


def moved(slo, *rows):
    place, at = np.zeros(len(rows), dtype=np.intp), np.arange(len(rows))
    one = scene(*rows)
    ranges = [acceptance_range(one, slo, 0, int(row)) for row in at]
    return moves(one, slo, one.candidates(place, at), ranges)


def test_a_lone_request_decodes_as_much_faster_as_a_step_yields_tokens():
    (found,) = moved(asked(), NGRAM)
    # By hand: 1 + a + a^2 + a^3 is 2.176 at 0.6, 1.624 at 0.4 and 2.734375 at 0.75.
    assert found["tpot"] == pytest.approx((2.176 / 2.734375, 2.176 / 1.624), rel=2e-3)
    assert found["throughput"] == pytest.approx((1.624 / 2.176, 2.734375 / 2.176), rel=2e-2)


def test_a_fleet_that_is_just_large_enough_is_overloaded_at_the_lowest_acceptance():
    one = scene(NGRAM)
    c = one.candidates(np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp))
    most = float(capacity(c, one.parameters, slo_mixture(asked()).whole)[0])
    # At 0.4 a step yields 1.624 / 2.176 = 75 % of the tokens: 70 % of the load fits, 80 % does not.
    for share, bounded in ((0.7, True), (0.8, False)):
        (found,) = moved(asked(share * most), NGRAM)
        assert np.isfinite(found["ttft"][1]) == bounded


@pytest.mark.parametrize(
    ("row", "changes"),
    [
        ({"speculation": "off"}, {}),
        (NGRAM, {"speculation": {"acceptance": {"ngram": 0.6}}}),
        (NGRAM | {"accept_first": 0.7}, {}),
    ],
    ids=["no drafts", "slo.yaml says so", "a named deployment says otherwise"],
)
def test_what_is_not_the_catalogs_has_no_range(row, changes):
    slo = asked(**changes)
    assert acceptance_range(scene(row), slo, 0, 0) is None
    assert moved(slo, row) == [STEADY]


def test_offline_a_run_takes_longer_where_fewer_drafts_are_accepted():
    traffic = {"offline": {"requests": 1, "deadline_hours": 1}, "prompt_tokens": 1.0}
    slo = asked(traffic=traffic | {"output_tokens": 4000.0}, slo={})
    (found,) = moved(slo, NGRAM)
    assert found["time"] == pytest.approx((2.176 / 2.734375, 2.176 / 1.624), rel=2e-2)
