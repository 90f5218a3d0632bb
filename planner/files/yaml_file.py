"""YAML 1.2 with the line of each key, built from parser events; the only import of yaml."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import yaml

from planner.errors import Fault, InputError
from planner.files.disk import read_text, too_large
from planner.files.document import DEPTH, TOO_DEEP, Document, KeyPath, UnfitValuesError, dotted

YAML_BYTES = 4_000_000
YAML_VALUES = 400_000
DIGITS = 30

_EVENTS = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_KEYWORDS = dict.fromkeys(("", "~", "null", "Null", "NULL")) | {
    word: word.casefold() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")
}
_YAML_REPAIRS = (
    ("a tab in the indentation", "a tab; indent with spaces"),
    ("maximum nesting depth", TOO_DEEP),
    (
        "mapping values are not allowed",
        "a second ': ' in one value, or wrong indentation; "
        "put text that holds ': ' in quotes, and line keys up",
    ),
    ("could not find expected ':'", "a key without ': '; write `key: value`, with the space"),
    (
        "did not find expected key",
        "the indentation does not fit, or a quote is not closed; line the keys of one block up",
    ),
    (
        "did not find expected",
        "a bracket, brace or list is not closed; close it, and line the entries up",
    ),
    ("unexpected end of stream", "a quote is not closed; close it"),
    ("control characters", "a control character; remove it"),
    ("undefined alias", "an alias (*name) without its anchor; write the value out"),
    ("cannot start any token", "text may not begin with this character; put it in quotes"),
)


def read_yaml(path: Path) -> Document:
    """Read a YAML 1.2 file: only true and false are booleans, dates are ``datetime.date``.

    Raises:
        InputError: The file cannot be read, is no YAML, or breaks a limit; as
            :class:`UnfitValuesError` where only single values are at fault.
    """
    return parse_yaml(read_text(path, YAML_BYTES), str(path))


def parse_yaml(text: str, source: str) -> Document:
    """Read YAML text; `source` names it in messages.

    Raises:
        InputError: As for :func:`read_yaml`.
    """
    if len(text) > YAML_BYTES:
        raise InputError(source, [too_large(YAML_BYTES)])
    builder = _YamlBuilder(text, source)
    data = builder.document()
    document = Document(source, data, builder.lines)
    if builder.faults:
        raise UnfitValuesError(document, builder.faults)
    return document


def dump_yaml(data: object, *, comment: str = "") -> str:
    """Return data as YAML that readers of both YAML 1.1 and 1.2 understand alike.

    Args:
        data: Mappings, lists or tuples, text, numbers, booleans, None, dates; keys keep their
            order.
        comment: Lines for the top of the file, without ``#``.
    """
    head = "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines())
    body = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return head + str(body)


class _Dumper(yaml.SafeDumper):
    """Lists are indented below their key, text that a reader might take for a value is quoted."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        del indentless
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def _text_node(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif _looks_like_a_value(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _looks_like_a_value(text: str) -> bool:
    try:
        return _plain(text) != text
    except ValueError:
        return True


_Dumper.add_representer(str, _text_node)


class _YamlBuilder:
    """Builds values from YAML events, so that limits bite before anything large exists."""

    def __init__(self, text: str, source: str) -> None:
        self.faults: list[Fault] = []
        self.lines: dict[KeyPath, int] = {}
        self._text = text
        self._source = source
        self._values = 0
        self._anchors: dict[str, tuple[object, int]] = {}
        try:
            self._parser: Any = _EVENTS(text)
        except (yaml.YAMLError, UnicodeEncodeError) as error:
            self._refuse(error)

    def document(self) -> object:
        """Return the one document of the text."""
        self._next()
        if isinstance(self._next(), yaml.StreamEndEvent):
            self._stop("the file is empty; write its content first", None)
        data = self._value(self._next(), ())
        self._next()
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            self._stop("a second document (---); keep one per file", event)
        return data

    def _next(self) -> Any:
        try:
            return self._parser.get_event()
        except yaml.YAMLError as error:
            self._refuse(error)

    def _refuse(self, error: Exception) -> NoReturn:
        mark: Any = getattr(error, "problem_mark", None)
        text = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
        line = self._text.split("\n")[mark.line : mark.line + 1] if mark else []
        if any("\t" in row[: len(row) - len(row.lstrip())] for row in line):
            text = "a tab in the indentation"
        known = [repair for piece, repair in _YAML_REPAIRS if piece in text]
        message = f"not valid YAML: {known[0] if known else text + '; mend it there'}"
        where = f"line {mark.line + 1}" if mark else ""
        raise InputError(self._source, [*self.faults, Fault(where, "", message)]) from None

    def _stop(self, message: str, event: Any) -> NoReturn:
        where = f"line {_line(event)}" if event else ""
        raise InputError(self._source, [*self.faults, Fault(where, "", message)])

    def _fault(self, event: Any, path: KeyPath, message: str) -> None:
        self.faults.append(Fault(f"line {_line(event)}", dotted(path), message))

    def _count(self, values: int, event: Any) -> None:
        self._values += values
        if self._values > YAML_VALUES:
            self._stop(
                f"more than {YAML_VALUES} values once aliases are written out; "
                "write the few you need",
                event,
            )

    def _value(self, event: Any, path: KeyPath) -> object:
        self.lines.setdefault(path, _line(event))
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                self._stop(
                    f"alias *{event.anchor} has no anchor before it; write the value out", event
                )
            value, size = self._anchors[event.anchor]
            self._count(size, event)
            return value
        before = self._values
        self._count(1, event)
        if event.tag not in (None, "!"):
            self._fault(event, path, f"tag {event.tag} is not supported; remove it")
        value = self._BUILD[type(event)](self, event, path)
        if event.anchor:
            self._anchors[event.anchor] = (value, self._values - before)
        return value

    def _mapping(self, event: Any, path: KeyPath) -> dict[str, object]:
        self._check_depth(event, path)
        made: dict[str, object] = {}
        while not isinstance(key := self._next(), yaml.MappingEndEvent):
            if not isinstance(key, yaml.ScalarEvent):
                self._stop("a list, mapping or alias as a key; write the key as text", key)
            here = (*path, key.value)
            if key.value in made:
                self._fault(key, here, "written twice; keep one")
            self.lines[here] = _line(key)
            made[key.value] = self._value(self._next(), here)
        return made

    def _sequence(self, event: Any, path: KeyPath) -> tuple[object, ...]:
        self._check_depth(event, path)
        made: list[object] = []
        while not isinstance(item := self._next(), yaml.SequenceEndEvent):
            made.append(self._value(item, (*path, len(made))))
        return tuple(made)

    def _check_depth(self, event: Any, path: KeyPath) -> None:
        if len(path) >= DEPTH:
            self._stop(TOO_DEEP, event)

    def _scalar(self, event: Any, path: KeyPath) -> object:
        if not event.implicit[0]:
            return event.value
        try:
            return _plain(event.value)
        except ValueError as error:
            self._fault(event, path, str(error))
            return object()

    _BUILD: Mapping[type, Callable[[_YamlBuilder, Any, KeyPath], object]] = {
        yaml.ScalarEvent: _scalar,
        yaml.MappingStartEvent: _mapping,
        yaml.SequenceStartEvent: _sequence,
    }


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _plain(text: str) -> object:
    """Return the value of an unquoted YAML scalar (core schema of YAML 1.2, plus dates).

    Raises:
        ValueError: Its text says what to write instead.
    """
    if text in _KEYWORDS:
        return _KEYWORDS[text]
    if text[0] not in "0123456789+-.nNiI":
        return text
    for form, read in _FORMS:
        if form.fullmatch(text):
            return read(text)
    return text


def _integer(text: str) -> int:
    if len(text) > DIGITS:
        raise ValueError(f"a number of more than {DIGITS} digits; shorten it, or quote text")
    return int(text)


def _based(text: str) -> int:
    return int(text, 0)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:20]} is too large; give a number")
    return value


def _not_finite(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a finite number; give a number")


def _date(text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text} is not a date; write YYYY-MM-DD") from None


_FORMS: tuple[tuple[re.Pattern[str], Callable[[str], object]], ...] = (
    (re.compile(r"[-+]?[0-9]+"), _integer),
    (re.compile(r"0o[0-7]{1,20}|0x[0-9a-fA-F]{1,20}"), _based),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), _float),
    (re.compile(r"[-+]?\.?(nan|NaN|NAN|inf|Inf|INF)"), _not_finite),
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), _date),
)
