"""Inputs that earlier runs found worth keeping, shared between all fuzzers of a solver.

One archive, written only over the version that was read: what two fuzzers found at the same
time is merged, never overwritten. It stays bounded, by the engine's own judgement of what
reaches something new where it has one, else the smallest inputs stay.
"""

import hashlib
import io
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from windlass.domain.values.errors import Conflict
from windlass.fuzzing.board import Board
from windlass.fuzzing.bucket import Busy, Changed, Unclear
from windlass.fuzzing.engines.engine import Engine
from windlass.fuzzing.layout import corpus_prefix

FILE: Final = "corpus.tar.gz"
RETRIES: Final = 5
MOST_INPUTS: Final = 10_000
MOST_BYTES: Final = 64 * 1024 * 1024
PAUSE_MS: Final = 200
PRUNE_ABOVE: Final = 200  # inputs: fewer are not worth the engine's time
NAME_LENGTH: Final = 32

Inputs = Mapping[str, bytes]


class Merged(NamedTuple):
    """How many inputs there are now, and how many of them are new."""

    inputs: int
    added: int


class Corpus:
    """The corpus of one solver."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._key = f"{corpus_prefix(board.solver)}/{FILE}"

    async def fetch(self, folder: Path) -> frozenset[str]:
        """All inputs as files; their names."""
        inputs, _ = await self._read()
        for name, data in inputs.items():
            (folder / name).write_bytes(data)
        return frozenset(inputs)

    async def size(self) -> int:
        """How many inputs there are."""
        return len((await self._read())[0])

    async def merge(self, folder: Path, fetched: frozenset[str] = frozenset()) -> Merged:
        """Add the inputs of a folder to what is there now, each content once.

        Those that were `fetched` and are no longer in the folder were pruned, and go.
        """
        ours = {name_of(data): data for data in _contents(folder)}
        for turn in range(RETRIES):
            if turn:
                spread = 0.5 + self._board.around.chance.fraction()
                await self._board.around.clock.sleep_ms(int(PAUSE_MS * 2**turn * spread))
            theirs, etag = await self._read()
            pruned = fetched - ours.keys()
            both = bounded({n: d for n, d in {**theirs, **ours}.items() if n not in pruned})
            added = len(both.keys() - theirs.keys())
            if both.keys() == theirs.keys():
                return Merged(len(both), 0)
            try:
                await self._board.bucket.put_if(self._key, _pack(both), expected=etag)
            except (Changed, Busy, Unclear):
                continue
            return Merged(len(both), added)
        raise Conflict("contended", f"others wrote {self._key} each time; nothing was changed")

    async def _read(self) -> tuple[Inputs, str | None]:
        stored = await self._board.bucket.get(self._key)
        return ({}, None) if stored is None else (_unpack(stored.body), stored.etag)


async def prune(engine: Engine, folder: Path, scratch: Path, budget_ms: int) -> None:
    """Leave in a folder what the engine says is needed to reach what all of it reaches."""
    if sum(1 for _ in folder.iterdir()) <= PRUNE_ABOVE:
        return
    kept = scratch / "pruned"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    if await engine.prune(folder, kept, budget_ms) and any(kept.iterdir()):
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)


def name_of(data: bytes) -> str:
    """Inputs are named by what they hold."""
    return hashlib.sha256(data).hexdigest()[:NAME_LENGTH]


def bounded(inputs: Inputs) -> dict[str, bytes]:
    """The smallest inputs, as many as may be kept."""
    kept: dict[str, bytes] = {}
    size = 0
    for name, data in sorted(inputs.items(), key=lambda item: (len(item[1]), item[0])):
        size += len(data)
        if len(kept) >= MOST_INPUTS or size > MOST_BYTES:
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
    """A damaged archive counts as empty: inputs are found again, a run is not lost for them."""
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
