"""The check of pull requests as a GitHub Actions workflow, and as a script for other CI."""

import shlex
from typing import Any, Final

import yaml

from windlass_fuzz.config.branch_names import for_github
from windlass_fuzz.config.combinations import combinations_of
from windlass_fuzz.config.solver_file import Solver

MINUTES: Final = 60
BUDGET: Final = "10m"
OUTPUT: Final = "fuzz-check"
SCRIPT: Final = """\
#!/bin/sh
# Written by `windlass fuzz workflows --plain`: fuzzes a change before it is merged.
# Run it in a clone with the whole history, where the change is checked out (GitLab: set GIT_DEPTH
# to 0). Set FUZZ_BASE to the branch or commit that the change goes to{nearest}.
# It exits with 1 if the change introduces a bug, and leaves summary.md, report.sarif, result.json
# and the inputs in {output}/.
set -eu
{setup}command -v windlass > /dev/null || python3 -m pip install --quiet 'windlass[{extras}]'
windlass fuzz check {path} {base} \\
  --budget "${{FUZZ_BUDGET:-{budget}}}" --output {output}
"""


def check_workflow(
    solver: Solver, path: str, install: list[dict[str, Any]], setup: list[dict[str, Any]]
) -> str:
    """Returns the workflow file. It has no secrets, since pull requests of strangers run it too."""
    result = "${{ always() && steps.check.outcome != 'skipped' }}"
    # GitHub checks out the change merged into its branch. The first parent is what it was merged
    # into; the event may still name an older commit, and then the change would be blamed for
    # others.
    commits = {"BASE": "${{ github.sha }}^1", "HEAD": "${{ github.sha }}"}
    command = (
        f'windlass fuzz check {path} --base "$BASE" --head "$HEAD" --budget {BUDGET} '
        f"--output {OUTPUT}"
    )
    steps: list[dict[str, Any]] = [
        # The checkout holds no token that a stranger's build could find.
        {"uses": "actions/checkout@v4", "with": {"fetch-depth": 0, "persist-credentials": False}},
        *install,
        *setup,
        {"name": "Fuzz the change", "id": "check", "run": command, "env": commits},
        {
            "name": "Show the summary", "if": result,
            "run": f'[ ! -e {OUTPUT}/summary.md ] || cat {OUTPUT}/summary.md >> '
            '"$GITHUB_STEP_SUMMARY"',
        },
        {
            "uses": "github/codeql-action/upload-sarif@v3", "if": result,
            "continue-on-error": True, "with": {"sarif_file": f"{OUTPUT}/report.sarif"},
        },
        {
            "uses": "actions/upload-artifact@v4", "if": result,
            "with": {"name": f"fuzz-check-{solver.name}", "path": OUTPUT},
        },
    ]  # fmt: skip
    made = {
        "name": f"fuzz {solver.name}: check",
        "on": {"pull_request": {"branches": [for_github(name) for name in solver.watched]}},
        # The last two are for the SARIF file; in private repositories it needs both.
        "permissions": {"contents": "read", "actions": "read", "security-events": "write"},
        "concurrency": {
            "group": f"fuzz-{solver.name}-check-${{{{ github.ref }}}}",
            "cancel-in-progress": True,
        },
        "jobs": {
            "check": {
                "runs-on": solver.role_settings("builder").runs_on,
                "timeout-minutes": MINUTES
                + (2 * len(combinations_of(solver)) + 1) * solver.build.timeout_ms // 60_000,
                "steps": steps,
            }
        },
    }
    head = f"# Written by `windlass fuzz workflows {path}`.\n"
    return head + yaml.safe_dump(made, sort_keys=False, width=1000, allow_unicode=True)


def check_script(solver: Solver, path: str, extras: str) -> str:
    """Returns a shell script that does the same elsewhere."""
    lines = solver.role_settings("builder").setup
    base = f'--base "${{FUZZ_BASE:-{shlex.quote(solver.branch)}}}"'
    if solver.has_branches:
        base = '${FUZZ_BASE:+--base "$FUZZ_BASE"}'
    return SCRIPT.format(
        setup="".join(f"{line}\n" for line in lines), extras=extras, path=path,
        base=base, budget=BUDGET, output=OUTPUT,
        nearest="; else it is the nearest one" if solver.has_branches else "",
    )  # fmt: skip
