"""Writes the OpenAPI description of the routes: `python -m windlass.server.description FILE`.

The types of the dashboard are generated from it.
"""

import sys
from pathlib import Path
from typing import Any

import msgspec

from windlass.server.app import API
from windlass.server.http.openapi import describe


def description() -> dict[str, Any]:
    """Returns the description as the generator of types needs it.

    It has no version, so that a release changes no types. The generator takes every field with a
    default as one that is there, which is true of answers only; requests refuse unknown fields.
    """
    described = describe(API, "1")
    for schema in described["components"]["schemas"].values():
        if schema.get("additionalProperties") is False:
            for field in schema.get("properties", {}).values():
                field.pop("default", None)
    return described


def main() -> None:
    """Writes the description to the file that is named."""
    encoded = msgspec.json.format(msgspec.json.encode(description()), indent=2)
    Path(sys.argv[1]).write_bytes(encoded + b"\n")


if __name__ == "__main__":
    main()
