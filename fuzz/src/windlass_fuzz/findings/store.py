"""The stored findings: one folder each, with the record, the input and the report."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path
from typing import Final

from windlass.domain.values.errors import NotFound
from windlass_fuzz.buckets.layout import findings_prefix, plain_ending
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.findings.record import FINDING, Finding
from windlass_fuzz.findings.report import render
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.state.state_file import StateFile, UnreadableState

SHORT: Final = 16
AT_ONCE: Final = 16  # records to read concurrently


class FindingStore:
    """The findings of one solver. Several fuzzers may write the same bug at the same time."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._prefix = findings_prefix(pipeline.solver)

    async def keys(self) -> list[str]:
        """Returns the keys of all findings."""
        found = [item.key async for item in self._pipeline.bucket.list(self._prefix)]
        return [key.split("/")[-2] for key in found if key.endswith(f"/{FINDING.file}")]

    async def all(
        self, notify: Callable[[str], None], but: Collection[str] = ()
    ) -> AsyncIterator[Finding]:
        """Yields every finding, `but` some; reports those it cannot read and continues."""
        keys = [key for key in await self.keys() if key not in but]
        for start in range(0, len(keys), AT_ONCE):
            batch = [self._read(key, notify) for key in keys[start : start + AT_ONCE]]
            for finding in await asyncio.gather(*batch):
                if finding is not None:
                    yield finding

    async def _read(self, key: str, notify: Callable[[str], None]) -> Finding | None:
        try:
            return await self._record_file(key).read()
        except UnreadableState as error:
            notify(str(error))
            return None

    async def get(self, key: str) -> Finding:
        """Returns one finding by its key, or by a unique prefix of it."""
        matches = [known for known in await self.keys() if known.startswith(key)]
        if len(matches) > 1:
            message = f"{len(matches)} findings have a key that starts with {key}; type more of it"
            raise InvalidSetting("finding", message, key)
        if len(matches) != 1 or (finding := await self._record_file(matches[0]).read()) is None:
            raise NotFound("finding", key)
        return finding

    async def put_input(self, key: str, data: bytes, suffix: str) -> str:
        """Stores an input and returns its name for the record."""
        name = input_name(data, suffix)
        await self._pipeline.bucket.put(f"{self._prefix}/{key}/{name}", data)
        return name

    async def fetch_input(self, finding: Finding, path: Path, name: str = "") -> bool:
        """Copies an input of a finding to a file; returns False if it was deleted.

        Without a name, it is the smallest one that fails.
        """
        return await self._pipeline.bucket.download(self.location(finding, name), path)

    async def update(self, key: str, change: Callable[[Finding | None], Finding]) -> Finding:
        """Updates a record and its report, and deletes inputs that are no longer kept."""
        written = await self._record_file(key).update(change)
        finding = written.value
        assert finding is not None
        page = render(finding, self._pipeline.solver, self.location(finding))
        await self._pipeline.bucket.put(f"{self._prefix}/{key}/report.md", page.encode())
        if written.applied and written.before is not None:
            gone = _names(written.before) - _names(finding)
            await self._pipeline.bucket.delete([self.location(finding, one) for one in gone])
        return finding

    def location(self, finding: Finding, name: str = "") -> str:
        """Returns the key of an input in the bucket; by default that of the smallest one."""
        return f"{self._prefix}/{finding.key}/{name or finding.input}"

    def _record_file(self, key: str) -> StateFile[Finding | None]:
        return StateFile(
            self._pipeline.bucket,
            f"{self._prefix}/{key}/{FINDING.file}",
            FINDING,
            self._pipeline.runtime,
        )


def input_name(data: bytes, suffix: str) -> str:
    """Returns the name under which an input is stored."""
    return f"input-{hashlib.sha256(data).hexdigest()[:SHORT]}{plain_ending(f'x{suffix}')}"


def _names(finding: Finding) -> set[str]:
    return {finding.input, *(one.name for one in finding.inputs)}
