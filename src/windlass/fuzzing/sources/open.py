"""Chooses where a solver's new commits come from: git or the GitHub API."""

import os
from pathlib import Path

from windlass.fuzzing.config.solver_file import Solver
from windlass.fuzzing.sources.commits import CommitSource
from windlass.fuzzing.sources.git_commits import GitCommitSource
from windlass.fuzzing.sources.github_api import GitHub, project_of
from windlass.fuzzing.sources.github_commits import GitHubCommitSource
from windlass.fuzzing.sources.mirror import Mirror
from windlass.fuzzing.state.state_file import Runtime


def open_commit_source(solver: Solver, folder: Path, runtime: Runtime) -> CommitSource:
    """Opens the source that the solver file names; a git mirror is kept in `folder`."""
    settings = solver.commits
    if settings.source == "git":
        mirror = Mirror(solver.repository, folder / "mirror.git")
        return GitCommitSource(mirror, solver.branch, solver.repository)
    project = settings.project or project_of(solver.repository)
    token = os.environ.get("GITHUB_TOKEN")
    return GitHubCommitSource(GitHub(settings.api, project, token, runtime.clock), solver.branch)
