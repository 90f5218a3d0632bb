"""Text that people write into files: one printable line, or a list of such."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from planner.spec.base import Many
from planner.spec.short_forms import A_TEXT


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"{ascii(text)[:60]} holds a control or invisible character; remove it")
    if text != text.strip():
        raise ValueError(f"{text[:60]!r} begins or ends with a blank; remove it")
    return text


def as_list(value: object) -> object:
    """Let `engines: vllm` stand for `engines: [vllm]`."""
    return (value,) if isinstance(value, str) else value


Text = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_one_line)]
Names = Annotated[Many[Text], BeforeValidator(as_list), A_TEXT]
SomeNames = Annotated[Many[Text], Field(min_length=1), BeforeValidator(as_list), A_TEXT]
