"""`windlass config`: the core options, their values and where each was set."""

from windlass.cli.options.configuration import DEFAULT, NONE_SET, CoreOptions, Setting
from windlass.cli.options.flags import Flag, Json
from windlass.cli.output.tables import print_rows


def show_config(*, changed: Flag = False, core: CoreOptions = NONE_SET, json: Json = False) -> None:
    """Show the core options, their values and where each was set.

    Parameters
    ----------
    changed
        Only options that differ from their default.
    """
    settings = core.settings().by_name.values()
    chosen = [s for s in settings if not changed or s.source != DEFAULT]
    found = [_described(setting) for setting in chosen]
    rows = [(one["name"], one["value"] or "none", one["source"]) for one in found]
    columns = ("option", "value", "set by")
    print_rows(found, json, columns, rows, "all options have their defaults")


def _described(setting: Setting) -> dict[str, object]:
    option = setting.option
    return {
        "name": option.shown,
        "value": option.show(setting.value),
        "default": option.show(option.default),
        "source": setting.source,
        "unit": option.unit,
        "variable": option.variable,
        "description": option.description,
    }
