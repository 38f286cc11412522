"""Where findings are kept: a folder each, with the record, the input and the report."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.fuzzing.board import Board
from windlass.fuzzing.chain import Chain, Misshapen
from windlass.fuzzing.findings.record import FINDING, Finding
from windlass.fuzzing.findings.report import render
from windlass.fuzzing.layout import findings_prefix

SHORT: Final = 16
AT_ONCE: Final = 16  # records that are read side by side


class Shelf:
    """The findings of one solver. Several fuzzers may put the same bug there at once."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._prefix = findings_prefix(board.solver)

    async def keys(self) -> list[str]:
        """The findings there are."""
        found = [item.key async for item in self._board.bucket.list(self._prefix)]
        return [key.split("/")[-2] for key in found if key.endswith(f"/{FINDING.file}")]

    async def all(self, told: Callable[[str], None]) -> AsyncIterator[Finding]:
        """Every finding; of one that cannot be read it is `told`, and the others go on."""
        keys = await self.keys()
        for start in range(0, len(keys), AT_ONCE):
            some = [self._read(key, told) for key in keys[start : start + AT_ONCE]]
            for finding in await asyncio.gather(*some):
                if finding is not None:
                    yield finding

    async def _read(self, key: str, told: Callable[[str], None]) -> Finding | None:
        try:
            return await self._chain(key).read()
        except Misshapen as error:
            told(str(error))
            return None

    async def get(self, key: str) -> Finding:
        """One finding; the beginning of its key is enough if no other begins so."""
        fitting = [known for known in await self.keys() if known.startswith(key)]
        if len(fitting) > 1:
            raise InvalidInput("finding", f"more of its key: {len(fitting)} begin so", key)
        if len(fitting) != 1 or (finding := await self._chain(fitting[0]).read()) is None:
            raise NotFound("finding", key)
        return finding

    async def put_input(self, key: str, data: bytes, suffix: str) -> str:
        """Keep an input; its name, to be written into the record."""
        name = f"input-{hashlib.sha256(data).hexdigest()[:SHORT]}{suffix}"
        await self._board.bucket.put(f"{self._prefix}/{key}/{name}", data)
        return name

    async def fetch_input(self, finding: Finding, path: Path) -> bool:
        """The input of a finding in a file; False if somebody removed it."""
        return await self._board.bucket.download(self.location(finding), path)

    async def update(self, key: str, change: Callable[[Finding | None], Finding]) -> Finding:
        """Write a record and the report that follows from it; an input it leaves goes."""
        written = await self._chain(key).update(change)
        finding = written.value
        assert finding is not None
        page = render(finding, self._board.solver, self.location(finding))
        await self._board.bucket.put(f"{self._prefix}/{key}/report.md", page.encode())
        before = written.before
        if written.applied and before is not None and before.input != finding.input:
            await self._board.bucket.delete([self.location(before)])
        return finding

    def location(self, finding: Finding) -> str:
        """The key of the input in the bucket."""
        return f"{self._prefix}/{finding.key}/{finding.input}"

    def _chain(self, key: str) -> Chain[Finding | None]:
        return Chain(
            self._board.bucket, f"{self._prefix}/{key}/{FINDING.file}", FINDING, self._board.around
        )
