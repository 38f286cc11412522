"""A local mirror of the repository, kept between runs, and checkouts from it.

Errors distinguish a repository that does not answer, a missing commit, and a commit that a shallow
clone has cut off. None of them changes the state.
"""

import asyncio
import os
import re
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from windlass.domain.values.errors import NotFound, Unreachable, WindlassError
from windlass_fuzz.coverage.changes import Hunk, changed_functions, hunks_of
from windlass_fuzz.coverage.coverage_map import ChangedFunction
from windlass_fuzz.coverage.functions import functions_in
from windlass_fuzz.processes.disk_space import DiskFull
from windlass_fuzz.processes.process_guard import guarded_environment
from windlass_fuzz.sources.commits import Head

FULL: Final = "No space left on device"
HEADS: Final = "refs/heads/"
REMOTES: Final = "refs/remotes/origin/"
MAX_SEARCHED: Final = 30  # files that may define a function
MAX_COMMITS: Final = 2_000  # commits of a line
# Nobody is there to type a password, and we parse English messages.
_ENVIRONMENT: Final = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
# We parse git's output, whatever this user's configuration says.
_CONFIGURATION: Final = ("-c", "core.quotePath=false", "-c", "log.showSignature=false")
_HEAD: Final = re.compile(r"(?:HEAD|@)(?=[~^]|$)")

_UNREACHABLE: Final = re.compile(
    r"unable to access|Could not resolve|Could not read from remote|early EOF|remote end hung up|"
    r"Connection (?:refused|timed out|reset)|Operation timed out|Network is unreachable|"
    r"could not read (?:Username|Password)|Authentication failed",
    re.IGNORECASE,
)


class GitFailed(WindlassError):
    """git failed; the message is its fatal error, or its last line of error output."""

    code = "git_failed"

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.text = details or message


class SubmoduleUnreachable(Unreachable):
    """The host of a submodule does not answer, or asks for a password."""


class Mirror:
    """A bare clone of a solver's repository in the workspace."""

    def __init__(self, repository: str, folder: Path) -> None:
        self._repository = repository
        self._folder = folder
        self._known: set[str] = set()  # commits that it has

    async def fetch(self) -> None:
        """Creates or updates the clone, and prunes deleted branches.

        A clone that cannot be updated (a run was killed while writing it) is made again, and so is
        a shallow one, which would stay shallow even if the repository has its whole history.
        """
        self._known.clear()
        if (self._folder / "HEAD").exists() and not self._shallow:
            try:
                await _git(self._folder, "remote", "set-url", "origin", self._repository)
                await _git(self._folder, "fetch", "--quiet", "--prune", "origin")
                return
            except GitFailed:
                pass
        await self._clone()

    async def _clone(self) -> None:
        """Clones next to the final folder and renames it when the clone is complete."""
        made = self._folder.with_name(f"{self._folder.name}.new")
        shutil.rmtree(made, ignore_errors=True)
        made.parent.mkdir(parents=True, exist_ok=True)
        try:
            words = ("clone", "--quiet", "--mirror", "--origin", "origin")
            await _git(None, *words, self._repository, made)
        except GitFailed as error:
            raise _unreachable(self._repository, error) from None
        shutil.rmtree(self._folder, ignore_errors=True)
        made.rename(self._folder)

    async def heads(self) -> list[Head]:
        """Returns all branches, as they were when the mirror was fetched.

        If the repository is itself a clone, such as the checkout of a CI job, it may have only one
        branch; the others come from its origin.
        """
        words = ("for-each-ref", "--format=%(objectname) %(committerdate:unix) %(refname)")
        lines = (await _git(self._folder, *words, REMOTES, HEADS)).splitlines()
        found = [line.split(" ", 2) for line in lines]
        heads = [Head(_branch_of(name), commit, int(at) * 1000) for commit, at, name in found]
        own = {_branch_of(name) for _, _, name in found if name.startswith(HEADS)}
        return [
            head
            for head, (_, _, name) in zip(heads, found, strict=True)
            if name.startswith(HEADS) or (head.name not in own and head.name != "HEAD")
        ]

    async def branches_with(self, commit: str) -> set[tuple[str, str]]:
        """Returns the branches that contain a commit, each with its newest commit.

        There are none if the repository does not have it.
        """
        if not await self.has(commit):
            return set()
        words = ("for-each-ref", "--format=%(objectname) %(refname)", "--contains", commit)
        lines = (await _git(self._folder, *words, REMOTES, HEADS)).splitlines()
        pairs = [line.split(" ", 1) for line in lines]
        return {(_branch_of(name), newest) for newest, name in pairs}

    async def is_left(self, commit: str) -> bool:
        """Returns whether no branch contains a commit any more, as after a forced push."""
        return not await self.has(commit) or not await self.branches_with(commit)

    async def first_with(self, commit: str, head: str) -> str:
        """Returns the oldest commit on the first-parent line of `head` that contains a commit."""
        line = await self.first_parents(head, MAX_COMMITS, without=commit)
        if not line or await self.parent(line[-1]) == commit:
            return commit
        words = ("rev-list", "--ancestry-path", f"{commit}..{head}", "--")
        after = set((await _git(self._folder, *words)).split())
        return next((one for one in reversed(line) if one in after), commit)

    async def git(self, *words: str) -> str:
        """Runs git in the mirror; raises `GitFailed`."""
        return await _git(self._folder, *words)

    async def require(self, commit: str) -> str:
        """Returns the full hash of a commit; raises if the repository does not have it."""
        try:
            name = f"{commit}^{{commit}}"
            found = await _git(self._folder, "rev-parse", "--verify", "--quiet", name)
            return found.strip()
        except GitFailed:
            pass
        if self._shallow:
            raise WindlassError(f"commit {commit} is missing from {self._shallow_clone()}")
        raise NotFound("commit", commit)

    @property
    def _shallow(self) -> bool:
        return (self._folder / "shallow").exists()

    def _shallow_clone(self) -> str:
        return (
            f"{self._repository}, which is a shallow clone; run `git fetch --unshallow` there "
            "(in GitHub Actions, set fetch-depth: 0)"
        )

    async def checkout(self, commit: str, folder: Path) -> str:
        """Checks out a commit and its submodules into a fresh folder; returns the full hash."""
        name = await self.require(commit)
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        await _git(None, "clone", "--quiet", "--shared", "--no-checkout", self._folder, folder)
        await _git(folder, "checkout", "--quiet", "--detach", name)
        if (folder / ".gitmodules").exists():
            await self._fetch_submodules(folder)
        return name

    async def _fetch_submodules(self, folder: Path) -> None:
        """Fetches the submodules; an unresponsive host is not the commit's fault.

        Addresses like `../part` are relative to the repository's origin, not to the mirror.
        """
        try:
            await _git(folder, "remote", "set-url", "origin", await self._address())
            await _git(folder, "submodule", "--quiet", "init")
            await _git(folder, "remote", "set-url", "origin", self._folder)
            await _git(folder, "submodule", "update", "--init", "--recursive", "--quiet")
        except GitFailed as error:
            if not _UNREACHABLE.search(error.text):
                raise
            reason = error.text.splitlines()[0]
            raise SubmoduleUnreachable(
                f"cannot reach a submodule of {self._repository} ({reason}); check its address "
                "and this machine's access to it, then run this again"
            ) from None

    async def _address(self) -> str:
        """Returns the address of the repository; that of its origin if it is a local clone."""
        folder = Path(self._repository)
        if not folder.is_dir():
            return self._repository
        try:
            origin = (await _git(folder, "config", "--get", "remote.origin.url")).strip()
        except GitFailed:
            return self._repository
        return os.path.normpath(folder / origin) if origin.startswith(".") else origin

    async def resolve(self, name: str) -> str:
        """Returns the full hash of a commit, branch or tag that a person names, or of `HEAD~1`.

        HEAD is the repository's own, which may contain what no branch does, as after the checkout
        of a pull request. Such a checkout may know a branch only as its origin's.
        """
        if name.startswith("-"):
            raise NotFound("commit", name)  # git would take it for an option
        if _HEAD.match(name):
            await self._fetch_one("HEAD", name)
            return await self.require(_HEAD.sub("FETCH_HEAD", name, count=1))
        for known in (name, f"{REMOTES}{name}"):
            if await self.has(known):
                return await self.require(known)
        if self._shallow:
            return await self.require(name)
        await self._fetch_one(name, name)
        return await self.require("FETCH_HEAD")

    async def _fetch_one(self, ref: str, name: str) -> None:
        try:
            await _git(self._folder, "fetch", "--quiet", "origin", ref)
        except GitFailed:
            raise NotFound("commit", name) from None

    async def merge_base(self, one: str, other: str) -> str:
        """Returns the newest commit that both contain."""
        try:
            return (await _git(self._folder, "merge-base", one, other)).strip()
        except GitFailed:
            if self._shallow:
                where = f"the history of {one[:12]} is missing from {self._shallow_clone()}"
                raise WindlassError(where) from None
            raise WindlassError(f"{one[:12]} and {other[:12]} have no commit in common") from None

    async def changed_files(self, base: str, head: str) -> list[str]:
        """Returns the files that differ between two commits."""
        words = ("diff", "--name-only", "--no-ext-diff", "-z", base, head)
        return [name for name in (await _git(self._folder, *words)).split("\0") if name]

    async def parent(self, commit: str) -> str | None:
        """Returns the first parent, if there is one."""
        try:
            found = await _git(self._folder, "rev-parse", "--verify", "--quiet", f"{commit}^1")
        except GitFailed:
            return None
        return found.strip()

    async def subject(self, commit: str) -> str:
        """Returns author, date and first line of a commit, for reports."""
        output = await _git(self._folder, "log", "-1", "--format=%an, %as: %s", commit)
        return output.strip()

    async def committed_ms(self, commit: str) -> int:
        """Returns when a commit was made."""
        return int(await self.git("show", "--no-patch", "--format=%ct", commit)) * 1_000

    async def in_order(self, commits: list[str]) -> list[str]:
        """Returns those of the commits that exist, ancestors first."""
        known = [commit for commit in commits if await self.has(commit)]
        if not known:
            return []
        order = await _git(self._folder, "rev-list", "--topo-order", "--reverse", *known, "--")
        wanted = set(known)
        return [commit for commit in order.split() if commit in wanted]

    async def first_parents(self, commit: str, most: int, without: str | None = None) -> list[str]:
        """Returns a commit and its line of first parents, newest first.

        Leaves out `without` and its ancestors.
        """
        excluded = [f"^{without}"] if without else []
        words = ("rev-list", "--first-parent", f"--max-count={most}", commit, *excluded, "--")
        return (await _git(self._folder, *words)).split()

    async def parents(self, commit: str) -> list[str]:
        """Returns the parents of a commit, the first one first."""
        return (await _git(self._folder, "log", "-1", "--format=%P", commit)).split()

    async def between(self, good: str, bad: str) -> list[str]:
        """Returns the commits that `bad` contains and `good` does not, newest first."""
        return (await _git(self._folder, "rev-list", "--topo-order", bad, f"^{good}", "--")).split()

    async def changes(self, commit: str) -> list[str]:
        """Returns the files that a commit changes; for a merge, against its first parent."""
        words = ("log", "-1", "-m", "--first-parent", "--format=", "--name-only", "--no-renames")
        return [
            name for name in (await _git(self._folder, *words, "-z", commit)).split("\0") if name
        ]

    async def has(self, commit: str) -> bool:
        """Returns whether the repository has a commit."""
        if commit not in self._known:
            try:
                await _git(self._folder, "cat-file", "-e", f"{commit}^{{commit}}")
            except GitFailed:
                return False
            self._known.add(commit)
        return True

    async def is_ancestor(self, one: str, other: str) -> bool:
        """Returns whether `one` is `other` or an ancestor of it."""
        try:
            await _git(self._folder, "merge-base", "--is-ancestor", one, other)
        except GitFailed:
            return False
        return True

    async def changed(self, commit: str, base: str | None = None) -> list[ChangedFunction]:
        """Returns the functions that a commit changes against `base` or its first parent."""
        before = base or await self.parent(commit) or await self._empty_tree()
        words = ("--no-color", "--no-ext-diff", "--src-prefix=a/", "--dst-prefix=b/", "-M", "-U0")
        diff = await _git(self._folder, "diff", *words, before, commit)
        hunks = hunks_of(diff)
        return changed_functions(hunks, await self._sources(commit, hunks))

    async def defines(self, commit: str, function: str) -> bool:
        """Returns whether the sources of a commit define a function of this name, in any class."""
        words = ("grep", "-l", "-z", "-I", "-w", "-F", "-e", function, commit, "--")
        try:
            found = (await _git(self._folder, *words)).split("\0")
        except GitFailed:
            return False  # no file contains it
        for place in filter(None, found[:MAX_SEARCHED]):
            source = await _git(self._folder, "show", place)
            if any(one.name.rpartition("::")[2] == function for one in functions_in(source)):
                return True
        return False

    async def line(self, commit: str, file: str, number: int) -> str:
        """Returns a line of a file that a build named by a path of its own; "" if there is none."""
        names = await _git(self._folder, "ls-tree", "-r", "--name-only", "-z", commit)
        fitting = [one for one in names.split("\0") if one and f"/{file}".endswith(f"/{one}")]
        if not fitting:
            return ""
        text = await _git(self._folder, "show", f"{commit}:{max(fitting, key=len)}")
        return "".join(text.splitlines()[number - 1 : number]).strip()

    async def has_text(self, commit: str, text: str) -> bool:
        """Returns whether a line in the sources of a commit contains a text."""
        try:
            await _git(self._folder, "grep", "-q", "-I", "-F", "-e", text, commit, "--")
        except GitFailed:
            return False
        return True

    async def asserts(self, commit: str) -> bool:
        """Returns whether the sources of a commit contain an assertion."""
        words = ("grep", "-q", "-I", "-w", "-E", "-e", r"assert[[:space:]]*\(", commit, "--")
        try:
            await _git(self._folder, *words)
        except GitFailed:
            return False
        return True

    async def _sources(self, commit: str, hunks: list[Hunk]) -> Mapping[str, str]:
        found = {}
        for path in sorted({hunk.path for hunk in hunks}):
            try:
                found[path] = await _git(self._folder, "show", f"{commit}:{path}")
            except GitFailed:
                continue  # a submodule, or a name that git quotes
        return found

    async def _empty_tree(self) -> str:
        return (await _git(self._folder, "hash-object", "-t", "tree", os.devnull)).strip()


def _branch_of(ref: str) -> str:
    return ref.removeprefix(HEADS).removeprefix(REMOTES)


async def check_repository(repository: str, *branches: str) -> None:
    """Raises if a repository does not answer or lacks one of these branches.

    It must have the first itself; its origin may have the others.
    """
    wanted = [place + branch for branch in branches for place in (HEADS, REMOTES)]
    try:
        found = await _git(None, "ls-remote", repository, *wanted)
    except GitFailed as error:
        raise _unreachable(repository, error) from None
    there = {line.partition("\t")[2] for line in found.splitlines()}
    for branch in branches:
        places = [HEADS + branch] if branch == branches[0] else [HEADS + branch, REMOTES + branch]
        if not there.intersection(places):
            field = "branch" if len(branches) == 1 else "branches"
            raise WindlassError(f"repository {repository} has no branch {branch}; change `{field}`")


def _unreachable(repository: str, error: GitFailed) -> Unreachable:
    """Returns what to do; a solver file is often in a folder of the repository."""
    folder = Path(repository)
    if folder.is_absolute() and not folder.exists() and "WINDLASS_JOB" in os.environ:
        # git says that it does not exist, which is not what people see who look for it.
        hidden = f"this job does not see {repository}: its worker hides it, or another has it"
        return Unreachable(f"{hidden}; start the worker with --share {repository}, or use a URL")
    above = folder.parents if folder.is_dir() else ()
    top = next((one for one in above if (one / ".git").exists()), None)
    advice = "check its address and this machine's access to it"
    if top is not None:
        up = os.path.relpath(top, folder)
        advice = f"set `repository: {up}`, which is the top folder {top} seen from the solver file"
    return Unreachable(f"cannot reach repository {repository} ({error}); {advice}")


def _place(folder: Path | None) -> list[str]:
    """Returns git's options for a folder; some configurations forbid finding a bare repository by
    the folder alone.
    """
    if folder is None:
        return []
    return ["-C", str(folder)] if (folder / ".git").exists() else ["--git-dir", str(folder)]


async def _git(folder: Path | None, *words: str | Path) -> str:
    """Runs git and returns its output."""
    process = await asyncio.create_subprocess_exec(
        "git", *_CONFIGURATION, *_place(folder), *(str(word) for word in words),
        env=guarded_environment({**os.environ, **_ENVIRONMENT}), stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, errors = await process.communicate()
    if process.returncode != 0:
        lines = errors.decode(errors="replace").strip().splitlines()
        if process.returncode == -signal.SIGXFSZ or any(FULL in line for line in lines):
            raise DiskFull(f"no disk space left for git {words[0]}; free some")
        fatal = [line for line in lines if line.startswith("fatal: ")]
        silent = f"git {words[0]} exited with {process.returncode}"
        raise GitFailed([*fatal, *lines[-1:], silent][0], "\n".join(lines))
    return output.decode(errors="replace")
