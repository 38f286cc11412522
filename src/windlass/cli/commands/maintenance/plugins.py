"""`windlass plugins`: what installed packages add to Windlass."""

from collections.abc import Iterator, Sequence
from typing import Any

from windlass.cli.options.flags import Json
from windlass.cli.output.exit_codes import FAILED
from windlass.cli.output.tables import print_table
from windlass.cli.output.text import print_json, say
from windlass.plugins import (
    InstalledPlugin,
    Plugin,
    PluginFailed,
    added,
    installed_plugins,
    load_part,
)


def plugins(*, json: Json = False) -> None:
    """List the installed plug-ins and what they add; exits with 1 if one cannot be loaded.

    It loads every part of each, and says what is wrong.
    """
    found = [_describe(one) for one in installed_plugins()]
    if json:
        print_json(found)
    else:
        _print(found)
    if any(one["problems"] for one in found):
        raise SystemExit(FAILED)


def _print(found: Sequence[dict[str, Any]]) -> None:
    rows = [
        (
            one["name"], f"{one['package']} {one['version']}", one["about"],
            ", ".join(f"{kind}: {' '.join(names)}" for kind, names in one["adds"].items()),
            "; ".join(one["problems"]),
        )
        for one in found
    ]  # fmt: skip
    print_table(("plug-in", "package", "about", "adds", "problems"), rows, "No plug-ins.")
    if any(one["problems"] for one in found):
        say("Windlass works without the parts that have problems.")


def _describe(found: InstalledPlugin) -> dict[str, Any]:
    plugin = found.plugin
    return {
        "name": found.name,
        "package": found.package,
        "version": found.version,
        "about": "" if plugin is None else plugin.about,
        "docs": "" if plugin is None else plugin.docs,
        "adds": {} if plugin is None else _adds(plugin),
        "problems": list(problems_of(found)),
    }


def _adds(plugin: Plugin) -> dict[str, list[str]]:
    """Returns what a plug-in declares, by kind."""
    kinds = {
        "commands": plugin.commands,
        "tasks": plugin.tasks,
        "providers": plugin.providers,
        "blobs": plugin.blobs,
        "server options": [f"--{option}" for option in plugin.server_options],
        "routes": [f"/api/v1/{plugin.name}"] if plugin.server else [],
        "page": [] if plugin.page is None else [plugin.page.label],
        "doctor": ["checks"] if plugin.checks else [],
        **plugin.extensions,
    }
    return {kind: list(names) for kind, names in kinds.items() if names}


def problems_of(found: InstalledPlugin) -> Iterator[str]:
    """Yields why a plug-in, or a part of it, cannot be used; imports every part."""
    plugin = found.plugin
    if plugin is None:
        yield found.problem
        return
    from windlass.server.plugins import load_server_part, page_folder

    paths = {f"the command {name}": command.path for name, command in plugin.commands.items()}
    for kind in ("tasks", "providers", "blobs"):
        paths |= {
            f"{kind} {one.name}": one.path for one in added(kind) if one.plugin == plugin.name
        }
    for place, ones in plugin.extensions.items():
        paths |= {f"{place} {name}": path for name, path in ones.items()}
    if plugin.checks:
        paths["the checks"] = plugin.checks
    for what, path in paths.items():
        try:
            load_part(plugin.name, what, path)
        except PluginFailed as error:
            yield error.message
    for check in (load_server_part, page_folder):
        try:
            check(plugin)
        except PluginFailed as error:
            yield error.message
