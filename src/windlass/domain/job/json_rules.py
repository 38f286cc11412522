"""The JSON that options of a job allow, as rules that a database can check.

`windlass.submit` in a user's own SQL transaction checks them (`check_submit_job.sql`), so that most
mistakes raise there. The rules never refuse what the validator accepts; it checks all jobs again.
"""

import types
from typing import Any, Final, Literal, Union, get_args, get_origin

import msgspec

from windlass.domain.job.forms import (
    DELAY,
    DURATION,
    GRACE,
    KEY_WINDOW,
    MOMENT,
    TIMEOUT,
)
from windlass.domain.job.job import KEYWORDS, OPTIONS, JobOption
from windlass.domain.lifecycle.rank import LEVEL_LIMIT, PRIORITY_NAMES, parse_priority
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import check_name

Rule = dict[str, Any]

_NUMBER: Final = r"[0-9]+(\.[0-9]+)?"
_LENGTH: Final = _NUMBER + "|" + "".join(
    f"({_NUMBER}{unit})?" for unit in ("w", "d", "h", "m", "s", "ms")
)  # fmt: skip
_TIME: Final = r"[0-9]{4}-(w?[0-9]).*(z|[+-][0-9]{2}.*)"
_KINDS: Final[dict[Any, str]] = {
    str: "string", int: "number", float: "number", bool: "boolean", type(None): "null",
}  # fmt: skip
_WORDS: Final = {
    "string": "text", "number": "a number", "boolean": "true or false", "array": "a list",
    "object": "an object",
}  # fmt: skip
_SEVERAL: Final = {"string": "texts", "number": "numbers"}
WRONG: Final = "?"  # matches no value of an option, so that the error says what was expected


def json_rules() -> dict[str, Rule]:
    """Returns the rule of each option, by name; options without one may be any JSON."""
    return {name: rule for name in sorted(KEYWORDS) if (rule := _rule(OPTIONS[name]))}


def _rule(option: JobOption) -> Rule:
    if option.type is Any:
        return {}
    rule: Rule = {"types": [], **_of_form(option)}
    for kind in _members(option.type):
        _allow(kind, rule)
    if option.bounds is not None:
        low, high = option.bounds
        rule |= {"least": low, "most": high, "expected": f"an integer from {low} to {high}"}
    if "expected" not in rule:
        rule["expected"] = _described(rule)
    return rule


def _members(kind: Any) -> tuple[Any, ...]:
    is_union = isinstance(kind, types.UnionType) or get_origin(kind) is Union
    return get_args(kind) if is_union else (kind,)


def _allow(kind: Any, rule: Rule) -> None:
    """Adds the JSON types of a Python type to a rule."""
    origin = get_origin(kind)
    if origin is Literal:
        rule["types"].append("string")
        rule["choices"] = list(get_args(kind))
    elif origin is tuple:
        rule["types"].append("array")
        rule["items"] = _names(get_args(kind)[0])
    elif origin is dict:
        rule["types"].append("object")
        rule["values"] = _names(get_args(kind)[1])
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        rule["types"].append("object")
        rule["fields"] = list(kind.__struct_fields__)
    else:
        rule["types"] += [name for name in _names(kind) if name not in rule["types"]]
        if kind is int:
            rule["whole"] = True


def _names(kind: Any) -> list[str]:
    return list(dict.fromkeys(_KINDS[member] for member in _members(kind)))


def _of_form(option: JobOption) -> Rule:
    """Adds what the form of an option requires beyond its type."""
    if option.name == "priority":
        names = "|".join(PRIORITY_NAMES)
        pattern, expected = f"{names}|[+-]?[0-9]+", _refusal(parse_priority, option.name)
        return {
            "pattern": _whole(pattern), "expected": expected, "least": -LEVEL_LIMIT,
            "most": LEVEL_LIMIT,
        }  # fmt: skip
    if (chars := option.chars) is not None:
        expected = _refusal(lambda _, name: check_name(name, "", chars), option.name)
        return {"pattern": f"^[^\x01-\x1f\x7f]{{1,{chars}}}$", "expected": expected}
    if option.form not in (DELAY, DURATION, TIMEOUT, GRACE, KEY_WINDOW, MOMENT):
        return {}
    other = _TIME if option.form is MOMENT else option.form.word
    pattern = _whole(f"{_LENGTH}|{other}" if other else _LENGTH)
    expected = _refusal(option.form.canonical, option.name)
    return {"pattern": pattern, "expected": expected, "least": 0}


def _whole(pattern: str) -> str:
    return rf"^\s*(?=\S)({pattern})\s*$"


def _refusal(read: Any, name: str) -> str:
    """Returns what is expected, in the words of the function that reads the option."""
    try:
        read(WRONG, name)
    except InvalidInput as error:
        return error.expected
    raise AssertionError(f"{name} can be {WRONG}")


def _described(rule: Rule) -> str:
    if "choices" in rule:
        return f"one of {', '.join(rule['choices'])}"
    words = [_WORDS[kind] for kind in rule["types"] if kind != "null"]
    inside = [_SEVERAL[kind] for kind in rule.get("items") or rule.get("values") or ()]
    of = f" of {' or '.join(inside)}" if inside else ""
    fields = f" with {', '.join(rule['fields'])}" if "fields" in rule else ""
    return " or ".join(words) + of + fields
