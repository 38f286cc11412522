"""`@JOB/ARTIFACT`: files of the jobs that a job waits for, by their names.

They are resolved at assignment, so that a superseded job's name means its successor's file.
Everything read here has ended, so nothing is locked.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from windlass.domain.rows.records import JobFacts
from windlass.domain.rows.views import accepted_attempt
from windlass.store.sql.transaction import ReadTx

UPSTREAM: Final = "@"

_decode: Final = msgspec.json.Decoder().decode


async def find_upstream(
    tx: ReadTx, spec: Mapping[str, Any], wanted: Sequence[str]
) -> dict[str, Any]:
    """Returns what these names refer to, without unknown ones."""
    facts = await _newest(tx, [*spec.get("after", ()), *spec.get("after_any", ())])
    named = await _names(tx, list(facts))
    chosen = {name: _choose(name.removeprefix(UPSTREAM), named) for name in wanted}
    files = await tx.files.artifacts(sorted({job for found in chosen.values() for job, _ in found}))
    digests = {
        (row.job, row.name): row.sha256
        for rows in files.values()
        for row in rows
        if row.attempt == accepted_attempt(facts[row.job])
    }
    values: dict[str, Any] = {}
    for name, found in chosen.items():
        for job, artifact in found:
            if (job, artifact) in digests:
                digest = digests[job, artifact]
                values[name] = {"name": name, "job": job, "artifact": artifact, "sha256": digest}
                break
    return values


async def _newest(tx: ReadTx, jobs: Sequence[int]) -> dict[int, JobFacts]:
    """Returns the jobs, or their successors if they were superseded."""
    newest: dict[int, JobFacts] = {}
    wanted = sorted(set(jobs))
    while wanted:
        facts = await tx.jobs.read(wanted)
        newest |= {job: fact for job, fact in facts.items() if not fact.superseded_by}
        wanted = sorted({fact.superseded_by for fact in facts.values() if fact.superseded_by})
    return newest


async def _names(tx: ReadTx, jobs: Sequence[int]) -> dict[str, int]:
    specs = await tx.jobs.specs(jobs)
    names = {job: _decode(body).get("name") for job, body in specs.items()}
    return {name: job for job, name in names.items() if name is not None}


def _choose(reference: str, named: Mapping[str, int]) -> list[tuple[int, str]]:
    """Returns the possible jobs with the rest as the artifact; names may contain slashes."""
    fits = [name for name in named if reference.startswith(f"{name}/")]
    return [(named[n], reference[len(n) + 1 :]) for n in sorted(fits, key=len, reverse=True)]
