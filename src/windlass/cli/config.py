"""`windlass config`: the core's options as they are in force, and where each was set."""

from windlass.cli.configuration import DEFAULT, Setting
from windlass.cli.core import NO_FLAGS, ConfigFile, CoreFlags, settings_of
from windlass.cli.output import Flag, Json, print_json, print_table


def show_config(
    *,
    changed: Flag = False,
    config: ConfigFile = None,
    core: CoreFlags = NO_FLAGS,
    json: Json = False,
) -> None:
    """Show the core's options as they are in force here, and where each was set.

    Parameters
    ----------
    changed
        Only those that do not have their default.
    """
    settings = settings_of(core, config).by_name.values()
    chosen = [s for s in settings if not changed or s.source != DEFAULT]
    if json:
        print_json([_described(setting) for setting in chosen])
        return
    rows = [(s.option.shown, s.option.show(s.value) or "none", s.source) for s in chosen]
    print_table(("option", "value", "set by"), rows, "every option has its default")


def _described(setting: Setting) -> dict[str, object]:
    option = setting.option
    return {
        "name": option.shown,
        "value": option.show(setting.value),
        "default": option.show(option.default),
        "source": setting.source,
        "unit": option.unit,
        "variable": option.variable,
        "flag": option.flag,
        "description": option.description,
    }
