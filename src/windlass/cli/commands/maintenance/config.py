"""`windlass config`: the core options, their values and where each was set."""

from windlass.cli.options.configuration import DEFAULT, NONE_SET, CoreOptions, Setting
from windlass.cli.options.flags import Flag, Json
from windlass.cli.output.tables import print_table
from windlass.cli.output.text import print_json


def show_config(
    *,
    changed: Flag = False,
    core: CoreOptions = NONE_SET,
    json: Json = False,
) -> None:
    """Show the core options, their values and where each was set.

    Parameters
    ----------
    changed
        Only options that differ from their default.
    """
    settings = core.settings().by_name.values()
    chosen = [s for s in settings if not changed or s.source != DEFAULT]
    if json:
        print_json([_described(setting) for setting in chosen])
        return
    rows = [(s.option.shown, s.option.show(s.value) or "none", s.source) for s in chosen]
    print_table(("option", "value", "set by"), rows, "all options have their defaults")


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
