"""The record of what the fuzzing of a commit was the first to reach."""

from typing import Final

import msgspec

from windlass_fuzz.buckets.layout import check_commit, is_commit, reached_prefix
from windlass_fuzz.coverage.reach import News
from windlass_fuzz.state.documents import struct_codec
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.state.state_file import StateFile

NAMES: Final = 1_000  # functions of a target that a record lists
MAX_NAME: Final = 500  # characters of a function's name
COMMITS: Final = 200  # whose records are kept


class TargetReach(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs of one target were the first to reach: some functions as path:signature."""

    functions: list[str] = []
    function_count: int = 0
    line_count: int = 0
    runs: int = 0
    at_ms: int = 0

    def plus(self, news: News, at_ms: int) -> "TargetReach":
        names = [f"{one.path}:{one.signature}"[:MAX_NAME] for one in news.functions]
        return TargetReach(
            functions=list(dict.fromkeys([*self.functions, *names]))[:NAMES],
            function_count=self.function_count + len(names),
            line_count=self.line_count + news.lines, runs=self.runs + 1, at_ms=at_ms,
        )  # fmt: skip


class CommitReach(msgspec.Struct, frozen=True, kw_only=True):
    """What the fuzzing of one commit was the first to reach, by target."""

    targets: dict[str, TargetReach] = {}


REACHED: Final = struct_codec("reached.json", CommitReach, CommitReach())


class ReachRecords:
    """The records of one solver."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._prefix = reached_prefix(pipeline.solver)

    async def get(self, commit: str) -> CommitReach:
        """Returns the record of a commit; an empty one if there is none."""
        return await self._file(commit).read()

    async def add(self, commit: str, target: str, news: News) -> None:
        """Adds what one run reached, and forgets the oldest records."""
        now_ms = self._pipeline.now_ms()

        def change(known: CommitReach) -> CommitReach:
            grown = known.targets.get(target, TargetReach()).plus(news, now_ms)
            return CommitReach(targets={**known.targets, target: grown})

        await self._file(commit).update(change)
        listed = [item async for item in self._pipeline.bucket.list(self._prefix)]
        records = [item for item in listed if is_commit(_name(item.key))]
        oldest = sorted(records, key=lambda item: item.modified_ms)[:-COMMITS]
        await self._pipeline.bucket.delete([item.key for item in oldest])

    def _file(self, commit: str) -> StateFile[CommitReach]:
        key = f"{self._prefix}/{check_commit(commit)}.json"
        return StateFile(self._pipeline.bucket, key, REACHED, self._pipeline.runtime)


def _name(key: str) -> str:
    return key.rpartition("/")[2].removesuffix(".json")
