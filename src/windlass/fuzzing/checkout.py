"""Sources of a commit: a mirror of the repository kept between runs, and checkouts from it.

What cannot be had is told apart: a repository that does not answer, a commit that is not in
it, one that a shallow clone has cut off. None of that touches the state.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from windlass.domain.values.errors import NotFound, Unreachable, WindlassError
from windlass.fuzzing.archives import DiskFull
from windlass.fuzzing.coverage.changes import Hunk, changed_functions, hunks_of
from windlass.fuzzing.coverage.mapping import Changed
from windlass.fuzzing.guard import guarded

FULL: Final = "No space left on device"
# Nobody is there to type a password, and hooks or settings of a user have no say here.
_ENVIRONMENT: Final = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


class GitFailed(WindlassError):
    """git said no; the message has its words."""

    code = "git_failed"


class Mirror:
    """A bare copy of a solver's repository, in the working folder of this machine."""

    def __init__(self, repository: str, folder: Path) -> None:
        self._repository = repository
        self._folder = folder

    async def fetch(self) -> None:
        """Make the copy, or bring it up to date; branches that are gone go here too.

        A copy that cannot be brought up to date (a run was killed over it) is made anew.
        """
        if (self._folder / "HEAD").exists():
            try:
                await _git(self._folder, "remote", "set-url", "origin", self._repository)
                await _git(self._folder, "fetch", "--quiet", "--prune", "origin")
                return
            except GitFailed:
                pass
        await self._clone()

    async def _clone(self) -> None:
        """Beside its place, and there only when it is whole."""
        made = self._folder.with_name(f"{self._folder.name}.new")
        shutil.rmtree(made, ignore_errors=True)
        made.parent.mkdir(parents=True, exist_ok=True)
        try:
            await _git(None, "clone", "--quiet", "--mirror", self._repository, made)
        except GitFailed as error:
            raise Unreachable(
                f"expected repository {self._repository} to answer, it did not ({error}); "
                "check its address and this machine's access to it"
            ) from None
        shutil.rmtree(self._folder, ignore_errors=True)
        made.rename(self._folder)

    async def git(self, *words: str) -> str:
        """Ask the copy something of one's own; raises `GitFailed`."""
        return await _git(self._folder, *words)

    async def require(self, commit: str) -> str:
        """The full name of a commit; raises when the repository does not have it."""
        try:
            name = f"{commit}^{{commit}}"
            found = await _git(self._folder, "rev-parse", "--verify", "--quiet", name)
            return found.strip()
        except GitFailed:
            pass
        if (self._folder / "shallow").exists():
            raise WindlassError(
                f"expected commit {commit} in {self._repository}, which is a shallow clone that "
                "ends before it; run `git fetch --unshallow` there"
            )
        raise NotFound("commit", commit)

    async def checkout(self, commit: str, folder: Path) -> str:
        """The files of a commit in a fresh folder, with submodules; its full name."""
        name = await self.require(commit)
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        await _git(None, "clone", "--quiet", "--shared", "--no-checkout", self._folder, folder)
        await _git(folder, "checkout", "--quiet", "--detach", name)
        if (folder / ".gitmodules").exists():
            await _git(folder, "submodule", "update", "--init", "--recursive", "--quiet")
        return name

    async def parent(self, commit: str) -> str | None:
        """The first parent, if there is one."""
        try:
            found = await _git(self._folder, "rev-parse", "--verify", "--quiet", f"{commit}^1")
        except GitFailed:
            return None
        return found.strip()

    async def subject(self, commit: str) -> str:
        """Author, day and first line of a commit, for reports."""
        said = await _git(self._folder, "log", "-1", "--format=%an, %as: %s", commit)
        return said.strip()

    async def in_order(self, commits: list[str]) -> list[str]:
        """Those of these commits that are there, ancestors first."""
        known = [commit for commit in commits if await self._has(commit)]
        if not known:
            return []
        order = await _git(self._folder, "rev-list", "--topo-order", "--reverse", *known, "--")
        wanted = set(known)
        return [commit for commit in order.split() if commit in wanted]

    async def is_ancestor(self, one: str, other: str) -> bool:
        """Whether `one` is `other` or comes before it."""
        try:
            await _git(self._folder, "merge-base", "--is-ancestor", one, other)
        except GitFailed:
            return False
        return True

    async def changed(self, commit: str) -> list[Changed]:
        """The functions that a commit touches against its first parent."""
        before = await self.parent(commit) or await self._empty_tree()
        diff = await _git(
            self._folder, "diff", "--no-color", "--no-ext-diff", "-M", "-U0", before, commit
        )
        hunks = hunks_of(diff)
        return changed_functions(hunks, await self._sources(commit, hunks))

    async def _sources(self, commit: str, hunks: list[Hunk]) -> Mapping[str, str]:
        found = {}
        for path in sorted({hunk.path for hunk in hunks}):
            try:
                found[path] = await _git(self._folder, "show", f"{commit}:{path}")
            except GitFailed:
                continue  # a submodule, or a name that git writes in quotes
        return found

    async def _empty_tree(self) -> str:
        return (await _git(self._folder, "hash-object", "-t", "tree", os.devnull)).strip()

    async def _has(self, commit: str) -> bool:
        try:
            await _git(self._folder, "cat-file", "-e", f"{commit}^{{commit}}")
        except GitFailed:
            return False
        return True


async def _git(folder: Path | None, *words: str | Path) -> str:
    """Run git and return what it printed."""
    where = [] if folder is None else ["-C", str(folder)]
    process = await asyncio.create_subprocess_exec(
        "git", *where, *(str(word) for word in words),
        env=guarded({**os.environ, **_ENVIRONMENT}), stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said, complained = await process.communicate()
    if process.returncode != 0:
        lines = complained.decode(errors="replace").strip().splitlines()
        if process.returncode == -signal.SIGXFSZ or any(FULL in line for line in lines):
            raise DiskFull(f"git found no room for its {words[0]}; free some")
        raise GitFailed(lines[-1] if lines else f"git {words[0]} ended with {process.returncode}")
    return said.decode(errors="replace")
