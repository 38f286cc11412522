"""The corpus: useful inputs of earlier runs, shared by all fuzzers of a solver or target.

It is one archive, written only over the version that was read, so that the inputs of two fuzzers
are merged and never overwritten. Its size is limited: engines with coverage keep the inputs that
reach something new, otherwise the smallest inputs stay.
"""

import hashlib
import io
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from windlass.domain.values.errors import Conflict
from windlass_fuzz.buckets.bucket import ConcurrentWrite, OutcomeUnknown, PreconditionFailed
from windlass_fuzz.buckets.layout import corpus_prefix
from windlass_fuzz.engines.engine import Engine
from windlass_fuzz.state.pipeline import Pipeline

FILE: Final = "corpus.tar.gz"
RETRIES: Final = 5
MAX_INPUTS: Final = 10_000
MAX_BYTES: Final = 64 * 1024 * 1024
PAUSE_MS: Final = 200
PRUNE_ABOVE: Final = 200  # inputs; a smaller corpus is not worth pruning
NAME_LENGTH: Final = 32

Inputs = Mapping[str, bytes]


class MergeResult(NamedTuple):
    """The number of inputs now, and how many of them are new."""

    inputs: int
    added: int


class Corpus:
    """The corpus of one solver; in a matrix, of a target and a format (`shared`).

    Until it has inputs of its own, it starts from the corpus of the solver.
    """

    def __init__(self, pipeline: Pipeline, shared: str = "") -> None:
        self._pipeline = pipeline
        self._key = f"{corpus_prefix(pipeline.solver, shared)}/{FILE}"
        self._older = f"{corpus_prefix(pipeline.solver)}/{FILE}"

    async def fetch(self, folder: Path) -> frozenset[str]:
        """Writes all inputs to a folder and returns their names."""
        inputs = await self._start()
        for name, data in inputs.items():
            (folder / name).write_bytes(data)
        return frozenset(inputs)

    async def size(self) -> int:
        """Returns the number of inputs."""
        return len(await self._start())

    async def merge(self, folder: Path, fetched: frozenset[str] = frozenset()) -> MergeResult:
        """Adds the inputs of a folder to the corpus, each content once.

        Inputs that were `fetched` and are no longer in the folder were pruned, and are removed.
        """
        ours = {name_of(data): data for data in _contents(folder)}
        for turn in range(RETRIES):
            if turn:
                spread = 0.5 + self._pipeline.runtime.chance.fraction()
                await self._pipeline.runtime.clock.sleep_ms(int(PAUSE_MS * 2**turn * spread))
            theirs, etag = await self._read()
            pruned = fetched - ours.keys()
            both = bounded({n: d for n, d in {**theirs, **ours}.items() if n not in pruned})
            added = len(both.keys() - theirs.keys())
            if both.keys() == theirs.keys():
                return MergeResult(len(both), 0)
            try:
                await self._pipeline.bucket.put_if(self._key, _pack(both), expected=etag)
            except (PreconditionFailed, ConcurrentWrite, OutcomeUnknown):
                continue
            return MergeResult(len(both), added)
        raise Conflict(
            "contended",
            f"could not write {self._key}: others changed it during each of {RETRIES} attempts; "
            "nothing was changed",
        )

    async def _start(self) -> Inputs:
        inputs, etag = await self._read()
        if etag is not None or self._key == self._older:
            return inputs
        stored = await self._pipeline.bucket.get(self._older)
        return {} if stored is None else _unpack(stored.body)

    async def _read(self) -> tuple[Inputs, str | None]:
        stored = await self._pipeline.bucket.get(self._key)
        return ({}, None) if stored is None else (_unpack(stored.body), stored.etag)


async def prune(engine: Engine, folder: Path, scratch: Path, budget_ms: int) -> None:
    """Reduces a folder to the inputs that the engine needs for the same coverage."""
    if sum(1 for _ in folder.iterdir()) <= PRUNE_ABOVE:
        return
    kept = scratch / "pruned"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    if await engine.prune(folder, kept, budget_ms) and any(kept.iterdir()):
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)


def name_of(data: bytes) -> str:
    """Returns the name of an input: a digest of its content."""
    return hashlib.sha256(data).hexdigest()[:NAME_LENGTH]


def bounded(inputs: Inputs) -> dict[str, bytes]:
    """Returns the smallest inputs, up to the limits."""
    kept: dict[str, bytes] = {}
    size = 0
    for name, data in sorted(inputs.items(), key=lambda item: (len(item[1]), item[0])):
        size += len(data)
        if len(kept) >= MAX_INPUTS or size > MAX_BYTES:
            break
        kept[name] = data
    return kept


def _contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.iterdir() if path.is_file()]


def _pack(inputs: Inputs) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in sorted(inputs):
            member = tarfile.TarInfo(name)
            member.size = len(inputs[name])
            archive.addfile(member, io.BytesIO(inputs[name]))
    return packed.getvalue()


def _unpack(body: bytes) -> dict[str, bytes]:
    """Unpacks an archive. A damaged one counts as empty: losing inputs must not fail a run."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(body), mode="r:gz") as archive:
            for member in archive:
                file = archive.extractfile(member)
                if file is not None and "/" not in member.name:
                    found[member.name] = file.read()
    except (tarfile.TarError, EOFError, OSError):
        return found
    return found
