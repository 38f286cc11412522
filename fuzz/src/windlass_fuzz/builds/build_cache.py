"""The builds in the bucket, and local copies of them."""

import shutil
from pathlib import Path
from typing import NamedTuple

from windlass_fuzz.buckets.layout import Kind, build_key, kind_prefix
from windlass_fuzz.builds.archive import BuildMetadata, unpack
from windlass_fuzz.processes.disk_space import report_disk_full
from windlass_fuzz.state.pipeline import Pipeline

ENDING = ".tar.gz"


class LocalBuild(NamedTuple):
    """An unpacked build."""

    folder: Path
    metadata: BuildMetadata


class BuildCache:
    """The builds of one combination of a solver; fetches each of them at most once per run."""

    def __init__(self, pipeline: Pipeline, folder: Path, combination: str = "") -> None:
        self._pipeline = pipeline
        self._folder = folder / combination if combination else folder
        self._combination = combination
        self._fetched: dict[tuple[Kind, str], LocalBuild] = {}
        self._listed: dict[Kind, list[str]] = {}

    async def commits(self, kind: Kind = "production") -> list[str]:
        """Returns the commits that have a build of this kind; asks the bucket once."""
        if kind in self._listed:
            return self._listed[kind]
        prefix = kind_prefix(self._pipeline.solver, kind, self._combination)
        found = [item.key async for item in self._pipeline.bucket.list(prefix)]
        names = [key.rpartition("/")[2] for key in found]
        ours = [name.removesuffix(ENDING) for name in names if name.endswith(ENDING)]
        self._listed[kind] = ours
        return ours

    async def fetch(self, commit: str, kind: Kind = "production") -> LocalBuild | None:
        """Returns an unpacked build, or None if it is gone."""
        if (kind, commit) in self._fetched:
            return self._fetched[kind, commit]
        target = self._folder / kind / commit
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        archive = target.with_name(f"{commit}{ENDING}")
        with report_disk_full(self._folder):
            if not await self._pipeline.bucket.download(
                build_key(self._pipeline.solver, kind, commit, self._combination), archive
            ):
                return None
        try:
            self._fetched[kind, commit] = LocalBuild(target, unpack(archive, target))
        finally:
            archive.unlink(missing_ok=True)
        return self._fetched[kind, commit]
