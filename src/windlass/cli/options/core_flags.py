"""The core options as flags, generated from the type that declares them."""

import os
from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Group, Parameter

from windlass.cli.options.configuration import OPTIONS, Settings, load_settings
from windlass.domain.values.options import Option

CORE: Final = Group(
    "Core options",
    help="Also as WINDLASS_… variables and in the --config file; see `windlass config`.",
    sort_key=10,
)
METAVARS: Final = {"ms": "DURATION", "bytes": "SIZE"}

ConfigFile = Annotated[
    Path | None,
    Parameter(name="--config", help="A TOML file with core options. Default: WINDLASS_CONFIG."),
]


def _parameter(option: Option) -> Any:
    default = option.show(option.default) or "none"
    kind = str | None
    metavar = METAVARS.get(option.unit, "NUMBER")
    if option.is_table:
        kind, metavar = list[str] | None, f"QUEUE={metavar}"  # type: ignore[assignment]
    elif option.is_list:
        metavar = "NAMES"
    return Annotated[
        kind,
        Parameter(
            name=option.flag,
            help=f"{option.description} Default: {default}.",
            metavar=metavar,
            group=CORE,
            consume_multiple=False,
            allow_leading_hyphen=True,
        ),
    ]


if TYPE_CHECKING:

    class CoreFlags:
        """Every core option as a flag; None if it was not given."""

else:
    CoreFlags = Parameter(name="*")(
        make_dataclass(
            "CoreFlags",
            [(name.replace(".", "__"), _parameter(o), None) for name, o in OPTIONS.items()],
            namespace={"__module__": __name__},  # Without it, cyclopts treats it as a builtin type.
            frozen=True,
            kw_only=True,
        )
    )

NO_FLAGS: Final = CoreFlags()


def given(flags: CoreFlags) -> dict[str, str]:
    """Returns the flags that were given, by option name."""
    found: dict[str, str] = {}
    for field in fields(flags):  # type: ignore[arg-type]
        value = getattr(flags, field.name)
        if value is not None:
            text = ",".join(value) if isinstance(value, list) else value
            found[field.name.replace("__", ".")] = text
    return found


def settings_of(flags: CoreFlags, config: Path | None) -> Settings:
    """Returns the core options for a command with these flags."""
    return load_settings(given(flags), os.environ, config)
