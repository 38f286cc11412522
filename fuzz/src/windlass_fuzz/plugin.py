"""Declares what fuzzing adds to Windlass."""

from typing import Final

from windlass.plugins import Plugin, PluginCommand, PluginPage

PLUGIN: Final = Plugin(
    api=1,
    name="fuzz",
    about="Fuzzes the commits of a solver and reports bugs.",
    commands={
        "fuzz": PluginCommand(
            "windlass_fuzz.cli.commands:fuzz",
            "Fuzz the commits of a solver: find, build, fuzz, report.",
            runs_foreign_programs=True,
        )
    },
    server="windlass_fuzz.server.part:PART",
    server_options={
        "fuzz": "A solver file of `windlass fuzz` whose queue, builds, findings and coverage the "
        "dashboard shows. Repeatable."
    },
    page=PluginPage("Fuzzing", view="/fuzzing"),
    checks="windlass_fuzz.checks:check",
    extensions={
        "fuzz.engines": {
            "afl": "windlass_fuzz.engines.afl:AflEngine",
            "command": "windlass_fuzz.engines.command:CommandEngine",
            "libfuzzer": "windlass_fuzz.engines.libfuzzer:LibFuzzerEngine",
            "typefuzz": "windlass_fuzz.engines.typefuzz:TypefuzzEngine",
        }
    },
    docs="docs/guides/fuzzing.md",
)
