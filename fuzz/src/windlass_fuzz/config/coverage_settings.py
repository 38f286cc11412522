"""The part of the solver file about coverage: how one test runs with the coverage build."""

from pathlib import Path
from typing import Any

import msgspec

from windlass.domain.values.quantities import parse_duration_ms
from windlass_fuzz.config.settings import convert_settings
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.errors import InvalidSetting


class CoverageOptions(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The options under `coverage` in the solver file.

    `argv` runs one test with the coverage build (default: the engine's `argv`, or its `binary`
    with one input), `binary` is the program that llvm-cov reads, and `timeout` applies to each
    test. `html: false` makes no HTML report.
    """

    argv: list[str] = []
    binary: str = ""
    timeout: str = "60s"
    html: bool = True

    @property
    def timeout_ms(self) -> int:
        return parse_duration_ms(self.timeout, "coverage.timeout")

    def command(self, binaries: Path, path: Path) -> list[str]:
        """Returns the command that runs one input."""
        return [
            word.replace("{binaries}", str(binaries))
            .replace("{input}", str(path))
            .replace("@@", str(path))
            for word in self.argv
        ]


def check_coverage_options(solver: Solver) -> None:
    """Raises if an option does not exist or makes no sense. Not all solvers need a command."""
    _ = convert_settings(dict(solver.coverage), CoverageOptions, "coverage").timeout_ms


def coverage_options(solver: Solver) -> CoverageOptions:
    """Returns the options, with the engine's command as the default."""
    options = convert_settings(dict(solver.coverage), CoverageOptions, "coverage")
    own: Any = solver.engine.get("argv")
    target: Any = solver.engine.get("binary")
    if not options.argv and isinstance(own, list):
        options.argv = [str(word) for word in own]
    elif isinstance(target, str):
        options.argv = options.argv or ["{binaries}/" + target, "{input}"]
        options.binary = options.binary or target
    if not options.argv:
        message = "coverage.argv is missing: the command that runs one test"
        raise InvalidSetting("coverage.argv", message)
    options.binary = options.binary or solver.binaries[0]
    return options
