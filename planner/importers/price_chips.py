"""Which accelerator a row sells: names hide form and memory, so its other words decide."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from planner.counting import counted
from planner.importers.price_rows import Known, RefusedError
from planner.spec.accelerator import Accelerator


@dataclass(frozen=True)
class Family:
    """Cards that price files call by one name.

    Attributes:
        stem: The name; the ids of its cards begin with it.
        plain: Id that the bare name stands for where nothing else is said; empty = none.
    """

    stem: str
    plain: str = ""


FAMILIES = (
    Family("a100"),
    Family("h100"),
    # Files that list both H200 cards write "NVL" for the one that is not SXM.
    Family("h200", plain="h200-sxm"),
)


@dataclass(frozen=True)
class InstanceRule:
    """What a provider's instance names tell; the shipped offers agree with every rule.

    Attributes:
        provider: Who sells it, folded.
        pattern: Matches the whole instance name, without case.
        accelerator: Id; empty = the name tells only that it is part of a GPU.
    """

    provider: str
    pattern: str
    accelerator: str = ""


INSTANCE_RULES = (
    InstanceRule("aws", r"g4dn\..*", "t4"),
    InstanceRule("aws", r"g5\..*", "a10g"),
    InstanceRule("aws", r"g6\..*", "l4"),
    InstanceRule("aws", r"g6f\..*"),
    InstanceRule("aws", r"g6e\..*", "l40s"),
    InstanceRule("aws", r"p4d\..*", "a100-sxm-40"),
    InstanceRule("aws", r"p4de\..*", "a100-sxm-80"),
    InstanceRule("aws", r"p5\..*", "h100-sxm"),
    InstanceRule("aws", r"p5en?\..*", "h200-sxm"),
    InstanceRule("aws", r"p6-b200\..*", "b200-sxm"),
    InstanceRule("aws", r"p6-b300\..*", "b300-sxm"),
    InstanceRule("azure", r"standard_nc\d+as_t4_v3", "t4"),
    InstanceRule("azure", r"standard_nc\d+ads_a100_v4", "a100-pcie-80"),
    InstanceRule("azure", r"standard_nc\d+adi?s_h100_v5", "h100-nvl"),
    InstanceRule("azure", r"standard_nd\d+asr_v4", "a100-sxm-40"),
    InstanceRule("azure", r"standard_nd\d+amsr_a100_v4", "a100-sxm-80"),
    InstanceRule("azure", r"standard_nd\d+isr_h100_v5", "h100-sxm"),
    # A sixth, a third and half of an A10, which files list as one.
    InstanceRule("azure", r"standard_nv(6|12|18)ads_a10_v5"),
    InstanceRule("azure", r"standard_nv\d+ads_a10_v5", "a10"),
    InstanceRule("gcp", r"a2-(highgpu|megagpu)-\d+g", "a100-sxm-40"),
    InstanceRule("gcp", r"a2-ultragpu-\d+g", "a100-sxm-80"),
    InstanceRule("gcp", r"a3-(highgpu|megagpu|edgegpu)-\d+g", "h100-sxm"),
    InstanceRule("oci", r"bm\.gpu4\.8", "a100-sxm-40"),
    InstanceRule("oci", r"bm\.gpu\.a100-v2\.8", "a100-sxm-80"),
    InstanceRule("oci", r"bm\.gpu\.h100\.8", "h100-sxm"),
    InstanceRule("digitalocean", r"gpu-h100x\d+-\d+gb", "h100-sxm"),
)

_FORMS = (
    ("sxm", re.compile(r"sxm\d?(x\d+)?|hgx")),
    ("pcie", re.compile(r"pcie")),
    ("nvl", re.compile(r"nvl")),
)
_SIZE = re.compile(r"(40|80|94|96|141)gi?b?")
_MEMORY_TOLERANCE = 0.13
"""Files round memory, or take GB for GiB; the next card of a family has 17 % more."""
_COUNT = re.compile(r"(?<![a-z0-9])(\d{1,2})x(?!large)(?=[\W_a-z]|$)|x(\d{1,2})(?![a-z0-9])")
"""How instance names count GPUs: 8x_h100, h100x8; not 48xlarge, not 8x64v128gb."""
_SWITCHED = frozenset({"nvlink", "mesh"})


@dataclass(frozen=True)
class ChipWords:
    """What a row says about its accelerator.

    Attributes:
        provider, instance: Who sells it under which name.
        name: The accelerator's name; may be empty.
        hints: Other names in the row.
        count: GPUs per instance; None = not said.
        readings: What one GPU's memory may be, likeliest first: each a set of sizes [MiB].
        also: Other (provider, instance) pairs that the row is known under.
    """

    provider: str
    instance: str
    name: str
    hints: tuple[str, ...] = ()
    count: float | None = None
    readings: tuple[frozenset[float], ...] = ()
    also: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Chip:
    """What a row sells, with the flag and note that its contradictions earn it."""

    accelerator: Accelerator
    gpus: int
    link: str = ""
    flag: str = ""
    note: str = ""


@lru_cache(maxsize=4096)
def identify(words: ChipWords, known: Known) -> Chip:
    """Return the accelerator and count of a row.

    Raises:
        RefusedError: No accelerator, an unknown or ambiguous one, part of one, or the row's
            words contradict each other.
    """
    rule = _rule(words)
    if rule is not None and not rule.accelerator:
        raise RefusedError("fractional GPU", "the instance has part of a GPU")
    here = _known_instance(words, known)
    candidates = _named(words, known, rule)
    candidates = _narrowed(candidates, words, rule, here)
    if len(candidates) > 1:
        ids = ", ".join(chip.id for chip in candidates)
        detail = (
            f"'{words.name}' may be {ids}, and '{words.instance}' does not tell; "
            "add this instance type to your offers to say which"
        )
        raise RefusedError("ambiguous accelerator", detail)
    return _counted(candidates[0], words, here)


def memory_readings(size: float, total: float, count: float) -> tuple[frozenset[float], ...]:
    """Return what one GPU's memory may be, likeliest first [MiB].

    Args:
        size: The cell's figure: of one GPU, or of all of them [MiB]; 0 = none.
        total: The cell's total, which some multiply once too often, and some not at all [MiB].
        count: GPUs per instance.
    """
    if size <= 0:
        return ()
    if count <= 1:
        return (frozenset({size}),)
    if total == size:
        return (frozenset({size, size / count}),)
    return (frozenset({size}), frozenset({size / count}))


def _tokens(*texts: str) -> list[str]:
    text = " ".join(texts).casefold()
    parted = re.sub(r"(a100|h100|h200)(?=nvl|sxm|pcie)", r"\1-", text)
    return [token for token in re.split(r"[^a-z0-9]+", parted) if token]


def _rule(words: ChipWords) -> InstanceRule | None:
    provider = words.provider.casefold()
    for rule in INSTANCE_RULES:
        if rule.provider == provider and re.fullmatch(rule.pattern, words.instance.casefold()):
            return rule
    return None


def _known_instance(words: ChipWords, known: Known) -> tuple[str, int] | None:
    for provider, instance in ((words.provider, words.instance), *words.also):
        found = known.instances.get((provider.casefold(), instance.casefold()))
        if found:
            return found
    return None


def _family(name: str) -> Family | None:
    tokens = _tokens(name)
    return next((family for family in FAMILIES if family.stem in tokens), None)


def _named(words: ChipWords, known: Known, rule: InstanceRule | None) -> list[Accelerator]:
    """Return the accelerators that the row's name may stand for."""
    name = words.name.strip()
    if not name:
        found = known.chips.get(rule.accelerator) if rule else None
        if found is None:
            raise RefusedError("no accelerator", "the row has no accelerator")
        return [found]
    family, same = _family(name), known.chips.get(name)
    if family is not None and same is not None and same.id.casefold() == name.casefold():
        return [same]
    if "mig" in _tokens(name):
        raise RefusedError("fractional GPU", f"'{name}' is part of a GPU")
    if family is not None:
        cards = [chip for chip in known.chips if chip.id.startswith(f"{family.stem}-")]
        if cards:
            return cards
    bare = re.sub(r"^(nvidia|amd|intel|google|tesla)[\s_-]+", "", name, flags=re.IGNORECASE)
    exact = known.chips.get(name) or known.chips.get(bare)
    if exact is None:
        raise RefusedError("unknown accelerator", _short(known.chips.unknown(name[:60])))
    _refuse_other_chip(words, exact, known)
    return [exact]


def _short(message: str) -> str:
    return message.partition("; known are")[0]


def _refuse_other_chip(words: ChipWords, chip: Accelerator, known: Known) -> None:
    """A provider's own name that says L40S makes a row that says L40 worthless."""
    for token in _tokens(words.instance, *words.hints):
        other = known.chips.get(token) if not token.isdigit() else None
        if other is not None and other.id != chip.id:
            detail = f"the row says {chip.id} and {other.id}; ask the provider which it is"
            raise RefusedError("contradiction", detail)


def _narrowed(
    candidates: list[Accelerator],
    words: ChipWords,
    rule: InstanceRule | None,
    here: tuple[str, int] | None,
) -> list[Accelerator]:
    chips = candidates
    for name, wanted in _said_forms(words, chips):
        chips = _keep(chips, wanted, f"'{name}' in its names")
    sizes = [int(match) * 1024.0 for match in _said_sizes(words)] if len(chips) > 1 else []
    for size in sizes:
        chips = _keep(chips, _fitting(chips, frozenset({size})), f"{size / 1024:g} GB in its name")
    chips = _of_memory(chips, words)
    for identity in (here[0] if here else "", rule.accelerator if rule else ""):
        named = [chip for chip in candidates if chip.id == identity]
        if named and named[0] in chips:
            chips = named
    family = _family(words.name)
    if len(chips) > 1 and family is not None:
        chips = [chip for chip in chips if chip.id == family.plain] or chips
    if here is not None and chips and here[0] not in {chip.id for chip in chips}:
        detail = f"the row says {chips[0].id}, your offers of this instance type {here[0]}"
        raise RefusedError("contradiction", f"{detail}; mend one of them")
    return chips


def _said_forms(
    words: ChipWords, chips: list[Accelerator]
) -> Iterator[tuple[str, list[Accelerator]]]:
    tokens = _tokens(words.name, words.instance, *words.hints)
    forms = {part for chip in chips for part in chip.id.split("-")[1:]}
    for form, pattern in _FORMS:
        if len(chips) > 1 and form in forms:
            for token in tokens:
                if pattern.fullmatch(token):
                    yield token, [chip for chip in chips if form in chip.id.split("-")]
                    break


def _said_sizes(words: ChipWords) -> Iterator[str]:
    near = re.findall(r"(?:a100|h100)[-_ ](\d+)gb?\b", words.instance.casefold().replace("_", " "))
    for token in (*_tokens(words.name, *words.hints), *(f"{size}gb" for size in near)):
        match = _SIZE.fullmatch(token)
        if match and token not in {"40", "80"}:
            yield match.group(1)


def _fitting(chips: Iterable[Accelerator], sizes: frozenset[float]) -> list[Accelerator]:
    return [
        chip
        for chip in chips
        if any(abs(size / (chip.memory_gib * 1024) - 1) <= _MEMORY_TOLERANCE for size in sizes)
    ]


def _of_memory(chips: list[Accelerator], words: ChipWords) -> list[Accelerator]:
    if not words.readings:
        return chips
    for sizes in words.readings:
        fitting = _fitting(chips, sizes)
        if fitting:
            return fitting
    size = min(min(sizes) for sizes in words.readings)
    ids = " or ".join(f"{chip.id} ({chip.memory_gib:g} GiB)" for chip in chips)
    detail = f"memory of {size / 1024:.4g} GiB per GPU is not that of {ids}; ask which card it is"
    raise RefusedError("contradiction", detail)


def _keep(chips: list[Accelerator], kept: list[Accelerator], words: str) -> list[Accelerator]:
    both = [chip for chip in chips if chip in kept]
    if not both:
        ids = ", ".join(chip.id for chip in chips)
        raise RefusedError("contradiction", f"{words} fits none of {ids}; ask which card it is")
    return both


def _counts_in(instance: str) -> set[int]:
    found = _COUNT.findall(instance.casefold())
    return {int(before or after) for before, after in found}


def _counted(chip: Accelerator, words: ChipWords, here: tuple[str, int] | None) -> Chip:
    count = words.count if words.count is not None else (here[1] if here else None)
    if count is None:
        detail = "the file does not say how many GPUs; add this instance type to your offers"
        raise RefusedError("unknown GPU count", detail)
    if count <= 0 or not float(count).is_integer():
        raise RefusedError("fractional GPU", f"the instance has {count:g} of a GPU")
    gpus, flag, note = int(count), "", ""
    domain = chip.link.domain_gpus if chip.link and chip.link.kind in _SWITCHED else 0
    if here is not None and here[1] != gpus:
        gpus, flag = here[1], "suspect"
        note = f"the file says {counted(int(count), 'GPU')}, the catalog {gpus}"
    elif (named := _counts_in(words.instance)) and gpus not in named:
        flag, note = "suspect", f"the file says {counted(gpus, 'GPU')}, the name {min(named)}"
    elif domain > 1 and gpus > domain and gpus % domain:
        flag, note = "suspect", f"{gpus} GPUs, where the link of the chip joins {domain}"
    bridged = chip.bridge is not None and "nvlink" in _tokens(words.name, words.instance)
    link = chip.bridge.kind if bridged and chip.bridge else ""
    return Chip(chip, gpus, link, flag, note)
