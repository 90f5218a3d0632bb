"""A read file -> a spec, or every fault of the file in plain words with line, key and repair."""

from __future__ import annotations

import datetime
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from planner.counting import counted
from planner.errors import Fault, InputError, suggestion
from planner.files import (
    Document,
    KeyPath,
    UnfitValuesError,
    dotted,
    key_path,
    parse_json,
    read_yaml,
    repeats_a_key,
)
from planner.files.disk import read_text
from planner.files.json_file import JSON_BYTES

_MISSING = "missing; add it"

Loaded = TypeVar("Loaded", bound=BaseModel)


class KeyFaultsError(ValueError):
    """What a validator raises to name the keys at fault below its own place."""

    def __init__(self, *faults: tuple[str, str]) -> None:
        """Args: faults: (key, message) pairs; the key may be empty."""
        self.faults = faults
        super().__init__("; ".join(f"{key}: {text}" if key else text for key, text in faults))


def load(document: Document, spec: type[Loaded]) -> Loaded:
    """Return the document as a spec.

    Args:
        document: What :mod:`planner.files` read.
        spec: The spec class of the file.

    Raises:
        InputError: Every fault of the document, in the order of its lines.
    """
    try:
        return spec.model_validate(document.data)
    except ValidationError as error:
        raise _placed(document, spec, error) from None


def load_yaml(path: Path, spec: type[Loaded]) -> Loaded:
    """Read a YAML file and return it as a spec.

    Raises:
        InputError: Every fault of the file, those of its YAML and those of the spec together.
    """
    return load_with_lines(path, spec)[0]


def load_with_lines(
    path: Path, spec: type[Loaded], more: Callable[[Document], Iterable[Fault]] = lambda _: ()
) -> tuple[Loaded, Document]:
    """Read a YAML file, once, and return it as a spec and as it is written.

    Args:
        path: The file.
        spec: What it is to be.
        more: Finds what else is wrong with a file that is no such spec, each with its line.

    Raises:
        InputError: Every fault of the file, those of its YAML, of the spec and `more` together.
    """
    try:
        document = read_yaml(path)
    except UnfitValuesError as error:
        further = (*faults_of(load, error.document, spec), *more(error.document))
        raise together(error, further) from None
    try:
        return load(document, spec), document
    except InputError as error:
        told = {fault.key for fault in error.faults}
        further = tuple(fault for fault in more(document) if fault.key not in told)
        raise InputError(error.source, by_line([*error.faults, *further])) from None


def load_json(path: Path, spec: type[Loaded]) -> Loaded:
    """Read a JSON file, whose dates are text, and return it as a spec.

    Raises:
        InputError: Every fault of the file, those of its JSON and those of the spec together.
    """
    text, source = read_text(path, JSON_BYTES), str(path)
    try:
        loaded = spec.model_validate_json(text)
    except ValidationError as error:
        raise _of_json(text, source, spec, error) from None
    if repeats_a_key(text):
        parse_json(text, source)
    return loaded


def _of_json(text: str, source: str, spec: type[BaseModel], error: ValidationError) -> InputError:
    """Return the faults of JSON text: those of its values, and what its spec says of it."""
    try:
        document = parse_json(text, source)
    except UnfitValuesError as unfit:
        return together(unfit, _placed(unfit.document, spec, error).faults)
    return _placed(document, spec, error)


def faults_of(check: Callable[..., object], *arguments: object) -> tuple[Fault, ...]:
    """Return the faults that a check raises as InputError; none if it passes."""
    try:
        check(*arguments)
    except InputError as error:
        return error.faults
    return ()


def together(error: UnfitValuesError, others: Iterable[Fault]) -> InputError:
    """Return values that cannot be read and the other faults of a file, by line.

    Args:
        error: The values.
        others: What is wrong with the rest of the file, each with its line; of an unfit value and
            its parts nothing more is said.
    """
    unfit = [re.escape(fault.key) for fault in error.faults]
    same = re.compile(rf"({'|'.join(unfit)})([.\[].*)?", re.DOTALL)
    further = [fault for fault in others if not same.fullmatch(fault.key)]
    return InputError(error.source, by_line([*error.faults, *further]))


def by_line(faults: Iterable[Fault]) -> list[Fault]:
    """Return faults in the order of their lines; each has one."""
    return sorted(faults, key=lambda fault: int(fault.where.split()[-1]))


def _placed(document: Document, spec: type[BaseModel], error: ValidationError) -> InputError:
    """Return what a spec says of a document, in the order of its lines."""
    faults = _faults(document, spec, error)
    faults.sort(key=lambda fault: document.line(fault[0]))
    return InputError(document.source, [document.fault(*fault) for fault in faults])


_Problem = dict[str, Any]


def _faults(
    document: Document, spec: type[BaseModel], error: ValidationError
) -> list[tuple[KeyPath, str]]:
    """Return the (key path, message) pairs of an error, without mere consequences."""
    found: dict[KeyPath, list[_Problem]] = {}
    for detail in error.errors(include_url=False):
        # A list is also called too short when its entries are at fault themselves.
        if detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]:
            continue
        found.setdefault(_data_path(document.data, detail), []).append(dict(detail))
    each = (fault for path, problems in found.items() for fault in _messages(spec, path, problems))
    faults = list(dict.fromkeys(each))
    misspelt = {
        (*path[:-1], match.group(1))
        for path, message in faults
        if (match := re.match(r"unknown key; did you mean '(.*)'", message))
    }
    return [fault for fault in faults if fault[1] != _MISSING or fault[0] not in misspelt]


def _data_path(data: object, detail: Mapping[str, Any]) -> KeyPath:
    """Return the key path in the file; pydantic's own also names branches of unions."""
    location = detail["loc"]
    path: list[str | int] = []
    for position, part in enumerate(location):
        last = position == len(location) - 1
        if isinstance(data, dict) and (part in data or (last and detail["type"] == "missing")):
            path.append(part)
            data = data.get(part)
        elif isinstance(data, tuple) and isinstance(part, int) and part < len(data):
            path.append(part)
            data = data[part]
    return tuple(path)


def _messages(
    spec: type[BaseModel], path: KeyPath, problems: list[_Problem]
) -> Iterator[tuple[KeyPath, str]]:
    literals = [problem for problem in problems if problem["type"] == "literal_error"]
    if literals and len(literals) == len(problems):
        expected = ", ".join(problem["ctx"]["expected"] for problem in literals)
        problems = [literals[0] | {"ctx": {"expected": expected}}]
    for problem in problems:
        context = problem.get("ctx", {})
        if isinstance(context.get("error"), KeyFaultsError):
            for key, message in context["error"].faults:
                yield (*path, *key_path(key)), message
        elif problem["type"] == "extra_forbidden":
            yield path, _unknown_key(spec, path)
        elif problem["type"] == "union_tag_invalid":
            key = context["discriminator"].strip("'")
            yield (*path, key), _not_one_of(context["tag"], context["expected_tags"])
        elif problem["type"] == "union_tag_not_found":
            key = context["discriminator"].strip("'")
            yield (*path, key), _MISSING
        else:
            yield path, _message(problem, context)


def _message(problem: _Problem, context: Mapping[str, Any]) -> str:
    kind, value = problem["type"], problem["input"]
    if value is None and kind.endswith("_type"):
        return "has no value; give one, or remove the key"
    if kind in _WORDED:
        return _WORDED[kind](value, context)
    if kind.endswith("_type") or kind in _WANTED:
        wanted = _WANTED.get(kind.removesuffix("_type"), _WANTED.get(kind, "another value"))
        return f"{_shown(value)} is not {wanted}{_unit_hint(kind, value)}"
    return str(problem["msg"])


def _shown(value: object) -> str:
    """Return a value as the file writes it, short enough for one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a block of keys"
    if isinstance(value, tuple | list):
        return "a list"
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"{value:.0f}"
    text = repr(value) if not isinstance(value, str) or value.isprintable() else ascii(value)
    return text if len(text) <= 60 else f"{text[:56]}...{text[-1]}"


def _unit_hint(kind: str, value: object) -> str:
    number = isinstance(value, str) and re.match(r"\s*[-+~<>=$€]*\s*\.?[0-9]", value)
    if kind in {"float_type", "int_type"} and number:
        return "; write the bare number, without unit or separators"
    return ""


def _not_one_of(value: object, expected: str) -> str:
    known = re.findall(r"'([^']*)'", expected) or [expected]
    near = suggestion(value, known) if isinstance(value, str) else ""
    names = ", ".join(name or "(empty)" for name in dict.fromkeys(known))
    return f"{_shown(value)} is not one of {names}{near}"


def _length(value: object, context: Mapping[str, Any]) -> str:
    low, high = context.get("min_length"), context.get("max_length")
    things = ("character", "") if isinstance(value, str) else ("entry", "entries")
    held = len(value) if isinstance(value, str) else context.get("actual_length")
    if low == 1 and not held:
        return "must not be empty; give a value"
    bound, limit = ("at least", low) if low is not None else ("at most", high)
    return f"holds {held}; give {bound} {counted(limit or 0, *things)}"


_WORDED: Mapping[str, Callable[[Any, Mapping[str, Any]], str]] = {
    "missing": lambda _value, _context: _MISSING,
    "greater_than": lambda value, context: f"{_shown(value)} must be above {context['gt']:g}",
    "greater_than_equal": lambda value, context: (
        f"{_shown(value)} must be at least {context['ge']:g}"
    ),
    "less_than": lambda value, context: f"{_shown(value)} must be below {context['lt']:g}",
    "less_than_equal": lambda value, context: f"{_shown(value)} must be at most {context['le']:g}",
    "literal_error": lambda value, context: _not_one_of(value, context["expected"]),
    "json_invalid": lambda _value, context: f"not valid JSON ({context['error']}); mend it there",
    "value_error": lambda _value, context: str(context["error"]),
    "assertion_error": lambda _value, context: str(context["error"]),
    "finite_number": lambda _value, _context: "not a finite number; give a number",
    "string_too_short": _length,
    "string_too_long": _length,
    "too_short": _length,
    "too_long": _length,
    "string_pattern_mismatch": lambda value, context: (
        f"{_shown(value)} does not have the form {context['pattern']}"
    ),
}
_WANTED: Mapping[str, str] = {
    "string": "text; put it in quotes",
    "int": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number of a size that is known",
    "float": "a number",
    "float_parsing": "a number",
    "bool": "true or false",
    "date": "a date; write YYYY-MM-DD",
    "tuple": "a list; write [a, b]",
    "dict": "a block of keys; write `key: value` lines",
    "model": "a block of keys; write `key: value` lines",
    "model_attributes": "a block of keys; write `key: value` lines",
}


def _unknown_key(spec: type[BaseModel], path: KeyPath) -> str:
    key = str(path[-1])
    models = [_keys(model) for model in _models_at(spec, path[:-1])]
    # A key that another branch of a union knows is of no use here.
    known = [name for keys in models if key not in keys for name in keys]
    here = tuple(part for part in path[:-1] if isinstance(part, str))
    others = (place for place in _places(spec, key) if place != here)
    elsewhere = min(others, key=len, default=None)
    near = suggestion(key, known)
    if near or not known:
        return f"unknown key{near or '; remove it'}"
    if elsewhere is not None:
        place = f"under `{dotted(elsewhere)}`" if elsewhere else "at the top level"
        return f"unknown key here; it belongs {place}"
    return f"unknown key; remove it, or use one of {', '.join(dict.fromkeys(known))}"


def _keys(model: type[BaseModel]) -> dict[str, Any]:
    """Return the keys that a model reads, with their types."""
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _models_at(spec: type[BaseModel], path: KeyPath) -> list[type[BaseModel]]:
    """Return the models that may stand at a key path."""
    forms: list[Any] = [spec]
    for part in path:
        forms = [inner for form in forms for inner in _inside(form, part)]
    return [form for form in forms if _is_model(form)]


def _inside(form: Any, part: str | int) -> list[Any]:
    """Return the types that may stand one step inside a type."""
    if _is_model(form):
        return _branches(_keys(form).get(str(part)))
    origin, args = get_origin(form), get_args(form)
    if origin is tuple and isinstance(part, int):
        return _branches(args[0])
    if origin is dict:
        return _branches(args[1])
    return []


def _branches(form: Any) -> list[Any]:
    """Return the alternatives of a type, without annotations."""
    origin = get_origin(form)
    if origin is Annotated:
        return _branches(get_args(form)[0])
    if origin in (Union, types.UnionType):
        return [branch for arg in get_args(form) for branch in _branches(arg)]
    return [form]


def _is_model(form: Any) -> bool:
    return isinstance(form, type) and issubclass(form, BaseModel)


def _places(spec: type[BaseModel], key: str, path: tuple[str, ...] = ()) -> Iterator[KeyPath]:
    """Yield where in the spec, blocks within blocks, a key of that name is known."""
    keys = _keys(spec)
    if key in keys:
        yield path
    for name, form in keys.items():
        branches = _branches(form)
        for branch in [*branches, *(item for one in branches for item in _inside(one, 0))]:
            if _is_model(branch) and len(path) < 4:
                yield from _places(branch, key, (*path, name))
