"""Chooses where a solver's new commits come from: git or the GitHub API."""

import os
from pathlib import Path

from windlass.fuzzing.config.solver_file import Solver
from windlass.fuzzing.sources.commits import Commits
from windlass.fuzzing.sources.git_commits import GitCommits
from windlass.fuzzing.sources.github_api import GitHub, project_of
from windlass.fuzzing.sources.github_commits import GitHubCommits
from windlass.fuzzing.sources.mirror import Mirror
from windlass.fuzzing.state.state_file import Around


def open_commits(solver: Solver, folder: Path, around: Around) -> Commits:
    """Where the solver's new commits come from; a mirror of its repository is kept in `folder`."""
    settings = solver.commits
    if settings.source == "git":
        mirror = Mirror(solver.repository, folder / "mirror.git")
        return GitCommits(mirror, solver.branch, solver.repository)
    project = settings.project or project_of(solver.repository)
    token = os.environ.get("GITHUB_TOKEN")
    return GitHubCommits(GitHub(settings.api, project, token, around.clock), solver.branch)
