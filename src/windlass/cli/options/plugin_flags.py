"""Options that plug-ins add to servers, as flags made from their declarations."""

from collections.abc import Iterator
from dataclasses import fields, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Group, Parameter

from windlass.plugins import working_plugins

PLUGINS: Final = Group("Options of plug-ins", help="See `windlass plugins`.", sort_key=9)


def _flags() -> Iterator[tuple[str, Any, None]]:
    for plugin in working_plugins():
        for option, text in plugin.server_options.items():
            parameter = Parameter(
                name=f"--{option}", help=text, group=PLUGINS, consume_multiple=False
            )
            yield option.replace("-", "_"), Annotated[list[str] | None, parameter], None


if TYPE_CHECKING:

    class PluginFlags:
        """Every option of a plug-in as a flag; None if it was not given."""

else:
    PluginFlags = Parameter(name="*")(
        make_dataclass(
            "PluginFlags",
            list(_flags()),
            namespace={"__module__": __name__},  # Without it, cyclopts treats it as a builtin type.
            frozen=True,
            kw_only=True,
        )
    )

NO_PLUGIN_FLAGS: Final = PluginFlags()


def plugin_options(flags: PluginFlags) -> dict[str, tuple[str, ...]]:
    """Returns the options that were given, by name."""
    given = {
        field.name.replace("_", "-"): getattr(flags, field.name)
        for field in fields(flags)  # type: ignore[arg-type]
    }
    return {option: tuple(values) for option, values in given.items() if values}
