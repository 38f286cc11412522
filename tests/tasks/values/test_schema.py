"""The schema of a function's arguments says what a form can offer."""

import enum
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal

from windlass.tasks.values.schema import arguments_schema, is_positional


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Size:
    width: int
    height: int = 2


class Opaque: ...


def everything(
    number: int,
    text: str = "a",
    when: date = date(2026, 1, 2),
    colour: Colour = Colour.RED,
    size: Size | None = None,
    mode: Literal["fast", "slow"] = "fast",
    names: list[str] | None = None,
    anything: Any = None,
    opaque: Opaque | None = None,
    file: Path | None = None,
    **more: Any,
) -> None: ...


def test_annotations_and_defaults_become_a_schema() -> None:
    schema = arguments_schema(everything)
    properties = schema["properties"]
    assert schema["required"] == ["number"]
    assert schema["additionalProperties"] is True
    assert properties["number"] == {"type": "integer"}
    assert properties["text"] == {"type": "string", "default": "a"}
    assert properties["when"] == {"type": "string", "format": "date", "default": "2026-01-02"}
    assert properties["colour"]["default"] == "red"
    assert schema["$defs"]["Colour"]["enum"] == ["blue", "red"]
    assert schema["$defs"]["Size"]["properties"]["height"]["default"] == 2
    assert properties["mode"]["enum"] == ["fast", "slow"]
    assert properties["names"]["anyOf"][0] == {"type": "array", "items": {"type": "string"}}
    assert properties["anything"] == {"default": None}
    assert "Opaque" in properties["opaque"]["title"]


def test_functions_without_arguments_take_none() -> None:
    def nothing() -> None: ...

    assert arguments_schema(nothing) == {
        "type": "object", "properties": {}, "additionalProperties": False,
    }  # fmt: skip


def test_arguments_by_position_are_told() -> None:
    import inspect

    def by_place(a: int, /, b: int) -> None: ...

    assert is_positional(inspect.signature(by_place))
    assert not is_positional(inspect.signature(everything))
    assert list(arguments_schema(by_place)["properties"]) == ["a", "b"]
