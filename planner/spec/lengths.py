"""Distributions of prompt and output lengths: a number, {p50, p95}, {mean, cv} or as recorded."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import NormalDist
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from planner.spec.base import Many, Spec
from planner.spec.load import KeyFaultsError
from planner.spec.short_forms import ShortForm

MAX_TOKENS = 10_000_000
"""Longest length accepted [tokens]; longer ones are slips of the pen."""

_Z95 = NormalDist().inv_cdf(0.95)

Tokens = Annotated[float, Field(ge=1, le=MAX_TOKENS)]


def _quantile(median: float, sigma: float, share: float) -> float:
    if sigma == 0:
        return median
    return median * math.exp(sigma * NormalDist().inv_cdf(share))


class QuantileLengths(Spec):
    """Log-normal lengths by two quantiles; p50 = p95 is a constant length.

    Attributes:
        p50: Median [tokens].
        p95: 95th percentile [tokens]; at least p50.

    Source:
        Log-normal: ln X is normal with mean ln p50 and sigma = ln(p95/p50) / z95,
        z95 = 1.6448536; mean = p50 * exp(sigma^2 / 2). N. L. Johnson et al., "Continuous
        Univariate Distributions", vol. 1, 2nd ed., 1994, chapter 14.

    >>> QuantileLengths(p50=1000, p95=1000).mean
    1000.0
    """

    p50: Tokens
    p95: Tokens

    @property
    def median(self) -> float:
        """Median [tokens]."""
        return self.p50

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm; 0 = constant."""
        return math.log(self.p95 / self.p50) / _Z95

    @property
    def mean(self) -> float:
        """Mean [tokens]."""
        return self.p50 * math.exp(self.sigma**2 / 2)

    def quantile(self, share: float) -> float:
        """Return the length [tokens] that a share (0 to 1, exclusive) of requests stay within."""
        return _quantile(self.median, self.sigma, share)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.p95 < self.p50:
            raise KeyFaultsError(
                ("p95", f"{self.p95:g} is below p50 {self.p50:g}; swap or mend them")
            )
        return self


class MomentLengths(Spec):
    """Log-normal lengths by mean and coefficient of variation.

    Attributes:
        mean: Mean [tokens].
        cv: Standard deviation / mean; 0 = constant.

    Source:
        As for QuantileLengths; sigma^2 = ln(1 + cv^2), median = mean / sqrt(1 + cv^2).
    """

    mean: Tokens
    cv: Annotated[float, Field(ge=0, le=10)]

    @property
    def median(self) -> float:
        """Median [tokens]."""
        return self.mean / math.sqrt(1 + self.cv**2)

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm; 0 = constant."""
        return math.sqrt(math.log1p(self.cv**2))

    def quantile(self, share: float) -> float:
        """Return the length [tokens] that a share (0 to 1, exclusive) of requests stay within."""
        return _quantile(self.median, self.sigma, share)


class SampledLengths(Spec):
    """Lengths as they were recorded: the mean of each of many equal shares of the requests.

    Attributes:
        shares: Mean lengths of equal shares, rising [tokens].
    """

    shares: Annotated[Many[Tokens], Field(min_length=2, max_length=1000)]

    @property
    def median(self) -> float:
        """Median [tokens]."""
        return self.quantile(0.5)

    @property
    def mean(self) -> float:
        """Mean [tokens]."""
        return sum(self.shares) / len(self.shares)

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm of a log-normal with the same mean and variance."""
        square = sum(value * value for value in self.shares) / len(self.shares)
        return math.sqrt(math.log(max(square / self.mean**2, 1.0)))

    def quantile(self, share: float) -> float:
        """Return the length [tokens] that a share (0 to 1, exclusive) of requests stay within.

        A share's mean stands at its middle; between the middles lengths rise in straight lines.
        """
        place = min(max(share * len(self.shares) - 0.5, 0.0), len(self.shares) - 1.0)
        low = min(int(place), len(self.shares) - 2)
        return self.shares[low] + (place - low) * (self.shares[low + 1] - self.shares[low])

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if any(high < low for low, high in pairwise(self.shares)):
            raise KeyFaultsError(("shares", "do not rise; sort them"))
        return self


def _constant(value: Any) -> Any:
    """Read a bare number as the constant length that it is."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"p50": value, "p95": value}
    return value


def _form(value: Any) -> str | None:
    for tag, form in _FORMS.items():
        if isinstance(value, form):
            return tag
    if not isinstance(value, dict):
        return None
    if "shares" in value:
        return "shares"
    return "moments" if "mean" in value or "cv" in value else "quantiles"


_FORMS = {"quantiles": QuantileLengths, "moments": MomentLengths, "shares": SampledLengths}


Lengths = Annotated[
    Annotated[QuantileLengths, Tag("quantiles")]
    | Annotated[MomentLengths, Tag("moments")]
    | Annotated[SampledLengths, Tag("shares")],
    Discriminator(
        _form,
        custom_error_type="lengths",
        custom_error_message="not a length; write a number of tokens, "
        "{p50: 900, p95: 3200} or {mean: 1200, cv: 0.8}",
    ),
    BeforeValidator(_constant),
    ShortForm({"type": "number", "minimum": 1, "maximum": MAX_TOKENS}),
]
