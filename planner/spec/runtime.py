"""How an engine is started: pinned version, images, flags by version, spellings, exclusions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.spec.base import Count, Name, Spec, Text

MemoryPart = Literal["weights", "kv_pool", "reserve", "unused"]
Feature = Literal["tensor", "pipeline", "data", "speculation", "ngram"]
Setting = str | int | float | bool
Version = Annotated[str, Field(pattern=r"^\d+(\.\d+)*[A-Za-z0-9.]*$")]


class FlagNames(Spec):
    """Names of flags from a version on; a later entry replaces the names it repeats.

    Attributes:
        since: First version with these names, as numbers.
        names: What is set -> flag, or key of the engine's own config file.
    """

    since: Annotated[tuple[int, ...], Field(min_length=1)]
    names: Annotated[dict[Name, Name], Field(min_length=1)]


class Spelling(Spec):
    """How an engine spells a format of ours.

    Attributes:
        value: The value of its flag.
        since: First release that has it, where the pinned one is too old for it.
    """

    value: Name
    since: Version | None = None


class Speculator(Spec):
    """Settings that turn a speculation method on.

    Attributes:
        settings: Key -> value. ``$drafts`` stands for the draft tokens, ``$drafts_and_bonus`` for
            one more, ``$head`` for the draft head or model.
        since: First release that has it, where the pinned one is too old for it.
    """

    settings: Annotated[dict[Name, Setting], Field(min_length=1)]
    since: Version | None = None


class MemoryShare(Spec):
    """What the engine's memory fraction counts: (sum of covers) / (sum of of)."""

    covers: Annotated[tuple[MemoryPart, ...], Field(min_length=1)]
    of: Annotated[tuple[MemoryPart, ...], Field(min_length=1)]


class Exclusion(Spec):
    """Features that the engine cannot run together.

    Attributes:
        features: All of them at once.
        before: Only in versions before this one, as numbers; empty = in all.
        reason: What the engine says.
    """

    features: Annotated[tuple[Feature, ...], Field(min_length=1)]
    before: tuple[int, ...] = ()
    reason: Text


class Runtime(Spec):
    """How a current generation is started.

    Attributes:
        version: Release that is deployed: the newest that the fit has seen in earnest.
        images: Vendor, or accelerator id, -> container image; ``{version}`` is replaced.
        command: Program and its first words.
        port: Port it serves on.
        health: Path that answers once it serves.
        flags: Names by version, the oldest first.
        online_weights: Format -> value of the quantization flag, where the engine quantizes a
            checkpoint of wider weights as it loads.
        kv: KV format -> spelling.
        speculation: Method -> settings.
        memory_share: What its memory fraction counts.
        excludes: What it cannot run together.
        one_server: Why a replica over several servers cannot be exported; empty = it can.
        source: Where all this was read.
    """

    version: Version
    images: dict[Name, Name]
    command: Annotated[tuple[Name, ...], Field(min_length=1)]
    port: Count
    health: Name
    flags: Annotated[tuple[FlagNames, ...], Field(min_length=1)]
    online_weights: dict[Name, Name] = Field(default_factory=dict)
    kv: dict[Name, Spelling]
    speculation: dict[Name, Speculator] = Field(default_factory=dict)
    memory_share: MemoryShare
    excludes: tuple[Exclusion, ...] = ()
    one_server: str = ""
    source: Text

    def flag_names(self, version: tuple[int, ...]) -> dict[str, str]:
        """Return the names of a version (as numbers)."""
        names: dict[str, str] = {}
        for entry in self.flags:
            if entry.since <= version:
                names |= entry.names
        return names

    def exclusion(self, features: frozenset[str], version: tuple[int, ...]) -> str:
        """Return why these features cannot run together; empty = they can."""
        for rule in self.excludes:
            if features.issuperset(rule.features) and (not rule.before or version < rule.before):
                return rule.reason
        return ""
