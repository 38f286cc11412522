"""Chooses where a solver's new commits come from: git or the GitHub API."""

import os
from pathlib import Path

from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.sources.commits import CommitSource
from windlass_fuzz.sources.git_commits import GitCommitSource
from windlass_fuzz.sources.github_api import GitHub, project_of
from windlass_fuzz.sources.github_commits import GitHubCommitSource
from windlass_fuzz.sources.mirror import Mirror
from windlass_fuzz.state.state_file import Runtime


def open_commit_source(solver: Solver, folder: Path, runtime: Runtime) -> CommitSource:
    """Opens the source that the solver file names; a git mirror is kept in `folder`."""
    settings = solver.commits
    if settings.source == "git":
        mirror = Mirror(solver.repository, folder / "mirror.git")
        return GitCommitSource(mirror, solver.branch, solver.repository)
    project = settings.project or project_of(solver.repository)
    token = os.environ.get("GITHUB_TOKEN")
    return GitHubCommitSource(GitHub(settings.api, project, token, runtime.clock), solver.branch)
