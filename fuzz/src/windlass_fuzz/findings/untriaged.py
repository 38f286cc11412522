"""Inputs that broke a build and were not triaged: kept in the bucket until they are.

A run uploads them while it fuzzes, so a killed run loses none, and a run without time for all of
them leaves the rest to the next one.
"""

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path, PurePath
from typing import Final

from windlass.domain.values.errors import InvalidInput
from windlass_fuzz.buckets.layout import (
    build_key,
    check_commit,
    is_commit,
    plain_ending,
    untriaged_prefix,
)
from windlass_fuzz.state.pipeline import Pipeline

MAX_INPUTS: Final = 500  # inputs per commit
MAX_BYTES: Final = 8 * 1024 * 1024
NAME_LENGTH: Final = 32
KEPT: Final = "kept-"  # prefix of the files of inputs that waited


class Untriaged:
    """The inputs of one combination of a solver that wait for triage, by commit."""

    def __init__(self, pipeline: Pipeline, combination: str = "") -> None:
        self._bucket = pipeline.bucket
        self._prefix = untriaged_prefix(pipeline.solver, combination)
        self._uploaded: dict[Path, str] = {}  # and the hash of its content

    async def keep(self, commit: str, folder: Path) -> None:
        """Uploads the files of a folder that are not uploaded yet."""
        for path in sorted(folder.iterdir()):
            if len(self._uploaded) >= MAX_INPUTS:
                return
            if path in self._uploaded or not path.is_file() or path.stat().st_size > MAX_BYTES:
                continue
            name = _name_of(path.read_bytes())
            if name not in self._uploaded.values():  # else another job may have triaged it
                await self._bucket.put(self._key_of(commit, path), path)
            self._uploaded[path] = name

    async def drop_done(self, commit: str) -> None:
        """Deletes uploaded files that another job has triaged since: their copies are gone."""
        waiting = {PurePath(key).stem for key in (await self.commits()).get(commit, [])}
        for path, name in self._uploaded.items():
            if name not in waiting and path.exists() and _name_of(path.read_bytes()) == name:
                path.unlink()

    async def commits(self) -> dict[str, list[str]]:
        """Returns the keys of waiting inputs by commit."""
        found: dict[str, list[str]] = {}
        async for item in self._bucket.list(self._prefix):
            folder, _, _ = item.key.rpartition("/")
            above, _, commit = folder.rpartition("/")
            if is_commit(commit) and above == self._prefix:
                found.setdefault(commit, []).append(item.key)
        return found

    async def fetch(self, commit: str, folder: Path, but: Collection[str] = ()) -> list[str]:
        """Copies the waiting inputs of a commit into a folder, `but` some; returns their keys."""
        keys = [key for key in (await self.commits()).get(commit, []) if key not in but]
        for key in keys:
            path = folder / f"{KEPT}{key.rpartition('/')[2]}"
            if await self._bucket.download(key, path):
                self._uploaded[path] = PurePath(key).stem
        return keys

    async def finish(
        self, commit: str, left: list[Path], fetched: Sequence[str] | None = None
    ) -> None:
        """Removes the triaged inputs of a commit, by default all; `left` were not triaged.

        A file that is left may be a new part of an input; then it is stored.
        """
        waiting = {self._key_of(commit, path): path for path in left if path.exists()}
        keys = (await self.commits()).get(commit, []) if fetched is None else fetched
        for key in waiting.keys() - set(keys):
            await self._bucket.put(key, waiting[key])
        await self._bucket.delete([key for key in keys if key not in waiting])

    async def pass_on(self, commit: str, later: str) -> None:
        """Moves the inputs of a commit whose build is gone to a commit that has one."""
        keys = (await self.commits()).get(commit, [])
        for key in keys:
            stored = await self._bucket.get(key)
            if stored is not None:
                await self._bucket.put(self._key(later, stored.body, _ending(key)), stored.body)
        await self._bucket.delete(keys)

    def _key_of(self, commit: str, path: Path) -> str:
        return self._key(commit, path.read_bytes(), plain_ending(path.name))

    def _key(self, commit: str, data: bytes, suffix: str) -> str:
        return f"{self._prefix}/{check_commit(commit)}/{_name_of(data)}{suffix}"


def _name_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:NAME_LENGTH]


def _ending(key: str) -> str:
    return plain_ending(key.rpartition("/")[2])


async def count_untriaged(pipeline: Pipeline) -> int:
    """Returns how many inputs of all combinations wait."""
    prefix = untriaged_prefix(pipeline.solver)
    keys = [item.key async for item in pipeline.bucket.list(prefix)]
    return sum(is_commit(key.split("/")[-2]) for key in keys)


async def forget_orphans(pipeline: Pipeline, combinations: Collection[str]) -> None:
    """Removes inputs of combinations that left the file, once their builds are gone."""
    prefix = untriaged_prefix(pipeline.solver)
    folders: dict[tuple[str, str], list[str]] = {}
    async for item in pipeline.bucket.list(prefix):
        above, _, commit = item.key.rpartition("/")[0].rpartition("/")
        combination = above.removeprefix(prefix).strip("/")
        if is_commit(commit) and combination not in combinations and "/" not in combination:
            folders.setdefault((combination, commit), []).append(item.key)
    for (combination, commit), keys in folders.items():
        try:
            key = build_key(pipeline.solver, "production", commit, combination)
        except InvalidInput:
            continue  # another run put it there
        if not await pipeline.bucket.exists(key):
            await pipeline.bucket.delete(keys)
