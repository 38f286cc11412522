"""Fetches seeds from outside: folders, archives, buckets, web, dictionaries, a generator program.

Content of a bucket, a server or an archive is cached on this machine until it changes. A place that
cannot be used is reported, and the run continues without it.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from windlass.domain.values.errors import WindlassError
from windlass.ports.clock import Chance, Clock
from windlass_fuzz.buckets.bucket import Bucket, Listed
from windlass_fuzz.config.seed_settings import SeedSettings
from windlass_fuzz.processes.environment import inherited_environment
from windlass_fuzz.processes.runner import Limits, run, tail
from windlass_fuzz.seeds.archives import read_archive
from windlass_fuzz.seeds.dictionaries import (
    MAX_FILE,
    format_dictionary,
    parse_dictionary,
)
from windlass_fuzz.seeds.limits import SeedFolder, SeedLimits, SeedsRefused, limits_of
from windlass_fuzz.seeds.tars import GZIPPED, PLAIN, ZSTD, read_tar
from windlass_fuzz.seeds.web import HTTPS, download
from windlass_fuzz.state.open import open_bucket

S3: Final = "s3://"
ZIP: Final = ".zip"
ARCHIVES: Final = (ZIP, *PLAIN, *GZIPPED, *ZSTD)
READY: Final = ".ready"
LOG_TAIL: Final = 500


@dataclass(slots=True)
class Seeds:
    """Inputs and the dictionary from outside, and what could not be used."""

    inputs: list[Path] = field(default_factory=list)
    dictionary: Path | None = None
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class SeedImporter:
    """Fetches the seeds of one run; `work` is kept between runs, `sources` is the checkout."""

    settings: SeedSettings
    work: Path
    sources: Path
    binaries: Path
    memory: int
    clock: Clock
    chance: Chance
    bucket_of: Callable[[str], Bucket] = lambda url: open_bucket(url, make=False)

    async def fetch(self) -> Seeds:
        """Returns all seeds; never fails because of foreign content."""
        seeds = Seeds()
        folders = []
        for place in self.settings.corpora:
            try:
                folders.append(await self._corpus(place))
            except (WindlassError, OSError) as error:
                seeds.problems.append(f"{place}: {error}")
        if self.settings.generate:
            try:
                folders.append(await self._generated())
            except (WindlassError, OSError) as error:
                seeds.problems.append(f"seeds.generate: {error}")
        self._forget({folder.name for folder in folders})
        found = {path.name: path for folder in folders for path in _inputs(folder)}
        ordered = sorted(found.values(), key=lambda path: (path.stat().st_size, path.name))
        seeds.inputs = ordered[: self.settings.inputs]
        seeds.dictionary = await self._dictionary(seeds.problems)
        return seeds

    @property
    def _cache(self) -> Path:
        return self.work / "seeds"

    async def _corpus(self, place: str) -> Path:
        if place.startswith(S3):
            return await self._from_bucket(place)
        if place.startswith(HTTPS):
            return await self._from_web(place)
        path = self._local(place)
        if path.is_dir():
            folder = self._fresh(_name("folder", place))
            into = SeedFolder(folder, limits_of(self.settings))
            for file in plain_files(path):
                into.add(_bounded(file, into.limits.largest))
            return folder
        about = path.stat()
        name = _name("archive", place, about.st_size, about.st_mtime_ns, self.settings)
        return await self._unpacked(name, path, place)

    async def _from_web(self, place: str) -> Path:
        """Downloads an archive, unless the server says that the cached one is current."""
        name = _name("web", place, self.settings)
        ready = self._cache / name / READY
        known = ready.read_text() if ready.exists() else ""
        scratch = self._cache / "download"
        got = await download(place, scratch, self.settings.size_bytes, known)
        if not got.fresh:
            return self._cache / name
        self._fresh(name)
        folder = await self._unpacked(name, scratch, urlsplit(place).path)
        ready.write_text(got.version)
        return folder

    async def _from_bucket(self, place: str) -> Path:
        """Fetches an archive, or all objects below a prefix, unless they are already cached."""
        parent, _, last = place.rstrip("/").rpartition("/")
        bucket = self.bucket_of(parent if place.endswith(ARCHIVES) else place)
        try:
            if place.endswith(ARCHIVES):
                listed = await _find(bucket, last)
            else:
                listed = await self._listed(bucket)
            if not listed:
                raise SeedsRefused("there is nothing")
            name = _name(place, *listed, self.settings)
            if (self._cache / name / READY).exists():
                return self._cache / name
            return await self._download(bucket, place, listed, name)
        finally:
            await bucket.close()

    async def _listed(self, bucket: Bucket) -> list[Listed]:
        """Lists a bucket, and stops if it holds more than we may fetch."""
        limits = limits_of(self.settings)
        found: list[Listed] = []
        size = 0
        async for item in bucket.list(""):
            if item.size <= limits.largest:
                found.append(item)
                size += item.size
            if len(found) > limits.inputs or size > limits.size:
                raise SeedsRefused(
                    f"more than {limits.inputs} inputs or {limits.size} bytes; raise seeds.inputs "
                    "and seeds.size to use them"
                )
        return found

    async def _download(self, bucket: Bucket, place: str, listed: list[Listed], name: str) -> Path:
        scratch = self._cache / "download"
        scratch.parent.mkdir(parents=True, exist_ok=True)
        if place.endswith(ARCHIVES):
            if listed[0].size > self.settings.size_bytes:
                raise SeedsRefused(f"larger than {self.settings.size_bytes} bytes (seeds.size)")
            await bucket.download(listed[0].key, scratch)
            return await self._unpacked(name, scratch, place)
        folder = self._fresh(name)
        into = SeedFolder(folder, limits_of(self.settings))
        for item in listed:
            if await bucket.download(item.key, scratch):
                into.add(_bounded(scratch, into.limits.largest))
        (folder / READY).touch()
        return folder

    async def _unpacked(self, name: str, archive: Path, called: str) -> Path:
        """Unpacks an archive once; a killed run leaves nothing half unpacked."""
        if (self._cache / name / READY).exists():
            return self._cache / name
        folder = self._fresh(name)
        into = SeedFolder(folder, limits_of(self.settings))
        if called.endswith(ZIP):
            read_archive(archive, into)
        elif called.endswith(ARCHIVES):
            await read_tar(archive, called, into, self.clock)
        else:
            raise SeedsRefused(f"expected a folder or an archive ({', '.join(ARCHIVES)})")
        (folder / READY).touch()
        return folder

    async def _generated(self) -> Path:
        """Runs the generator, and takes the plain files that it wrote."""
        made = self._fresh("making")
        log = self._cache / "generator.log"
        seed = str(int(self.chance.fraction() * 2**53))
        known = {"output": made, "seed": seed, "sources": self.sources, "binaries": self.binaries}
        argv = list(self.settings.generate)
        for key, value in known.items():
            argv = [word.replace("{" + key + "}", str(value)) for word in argv]
        most = self.settings.size_bytes
        limits = Limits(self.settings.timeout_ms, memory=self.memory, file_size=most)
        ended = await run(
            argv, cwd=self.sources, log=log, limits=limits, clock=self.clock,
            env=inherited_environment(),
            on_poll=lambda: _check_room(made, limits_of(self.settings)),
        )  # fmt: skip
        if not ended.ok:
            how = ended.describe(limits)
            raise SeedsRefused(f"{argv[0]} {how}: {tail(log, LOG_TAIL).strip()}")
        folder = self._fresh("generated")
        into = SeedFolder(folder, limits_of(self.settings))
        for file in plain_files(made):
            into.add(_bounded(file, into.limits.largest))
        return folder

    async def _dictionary(self, problems: list[str]) -> Path | None:
        """Returns one file with the words of all dictionaries."""
        words: dict[bytes, None] = {}
        for place in self.settings.dictionaries:
            try:
                words.update(dict.fromkeys(parse_dictionary(await self._content(place))))
            except (WindlassError, OSError) as error:
                problems.append(f"{place}: {error}")
        if not words:
            return None
        self._cache.mkdir(parents=True, exist_ok=True)
        path = self._cache / "words.dict"
        path.write_bytes(format_dictionary(words))
        return path

    async def _content(self, place: str) -> bytes:
        if place.startswith(HTTPS):
            scratch = self._cache / "download"
            await download(place, scratch, MAX_FILE)
            return scratch.read_bytes()
        if not place.startswith(S3):
            return _bounded(self._local(place), MAX_FILE)
        parent, _, last = place.rpartition("/")
        bucket = self.bucket_of(parent)
        try:
            listed = await _find(bucket, last)
            if not listed or listed[0].size > MAX_FILE:
                raise SeedsRefused(f"there is no dictionary of at most {MAX_FILE} bytes")
            stored = await bucket.get(last)
            return stored.body if stored is not None else b""
        finally:
            await bucket.close()

    def _local(self, place: str) -> Path:
        """Returns a path on this machine; one in the repository must not lead out of it."""
        path = Path(place)
        if not path.is_absolute():
            path = (self.sources / place).resolve()
            if not path.is_relative_to(self.sources.resolve()):
                raise SeedsRefused("it leads out of the repository")
        if not path.exists():
            raise SeedsRefused("there is no such file or folder")
        return path

    def _fresh(self, name: str) -> Path:
        folder = self._cache / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def _forget(self, used: set[str]) -> None:
        """Deletes what this run does not use: an old corpus must not fill the disk."""
        if self._cache.is_dir():
            for path in self._cache.iterdir():
                if path.is_dir() and path.name not in used:
                    shutil.rmtree(path, ignore_errors=True)
                elif path.is_file():
                    path.unlink()


async def _find(bucket: Bucket, key: str) -> list[Listed]:
    """Returns one object of a bucket in a list, or an empty list."""
    async for item in bucket.list(""):
        if item.key == key:
            return [item]
    return []


def plain_files(folder: Path) -> Iterator[Path]:
    """Yields the plain files below a folder, in order; links are neither read nor followed."""
    for place, folders, names in os.walk(folder, followlinks=False):
        folders.sort()
        for name in sorted(names):
            path = Path(place, name)
            with suppress(FileNotFoundError):
                if stat.S_ISREG(path.lstat().st_mode):
                    yield path


def _check_room(folder: Path, limits: SeedLimits) -> None:
    """Raises once a generator has written more than may be used."""
    size = 0
    for files, path in enumerate(plain_files(folder), 1):
        with suppress(FileNotFoundError):  # the generator may delete what it wrote
            size += path.lstat().st_blocks * 512
        if files > limits.inputs or size > limits.size + files * 4_096:
            raise SeedsRefused(
                f"it writes more than {limits.inputs} inputs or {limits.size} bytes; raise "
                "seeds.inputs and seeds.size to use them"
            )


def _inputs(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if path.name != READY)


def _bounded(path: Path, largest: int) -> bytes:
    """Reads at most one byte more than allowed, so that too large a file shows as such."""
    with path.open("rb") as file:
        return file.read(largest + 1)


def _name(*parts: object) -> str:
    """Returns the name of a cache folder: it changes with what is fetched, and with the limits."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
