"""Results of other jobs as arguments: `{"$result": JOB}`, filled in at assignment.

A job waits for every job whose result it names (`domain/job/validation.py`), so all of them have
ended, and nothing is locked. Their results do not change, so a repeated answer is the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from windlass.domain.lifecycle.states import COMPLETED, STATE_BY_CODE
from windlass.domain.rows.records import JobFacts
from windlass.domain.tasks.references import (
    FILE,
    RESULT,
    job_of,
    output_of,
    references_in,
    replaced,
)
from windlass.store.sql.transaction import ReadTx

_FILE: Final = f'"{FILE}"'.encode()

_decode = msgspec.json.Decoder().decode


class Filled(NamedTuple):
    """The values of one job's references, or why it cannot run.

    `files` are artifacts that its worker must fetch.
    """

    values: Mapping[int, Any]
    files: Mapping[str, Any]
    problem: str | None = None


def _of_job(job: int, file: Any) -> dict[str, Any]:
    """Returns a file inside a result as a file of the job that produced it."""
    return {FILE: {**file, "job": job} if isinstance(file, dict) else {"job": job}}


class Results:
    """The jobs that some specs name, and their results."""

    def __init__(self, facts: Mapping[int, JobFacts], bodies: Mapping[int, bytes]) -> None:
        self._facts = facts
        self._bodies = bodies

    @classmethod
    async def read(cls, tx: ReadTx, specs: Iterable[Mapping[str, Any]]) -> "Results":
        """Reads what these specs need, in few queries."""
        facts: dict[int, JobFacts] = {}
        wanted = sorted({job for spec in specs for job in results_of(spec)})
        while wanted:
            found = await tx.jobs.read(wanted)
            facts |= found
            later = {fact.superseded_by for fact in found.values() if fact.superseded_by}
            wanted = sorted(later - set(facts))
        ended = [job for job, fact in facts.items() if fact.state == COMPLETED]
        return cls(facts, await tx.jobs.results(sorted(ended)) if ended else {})

    def fill(self, spec: Mapping[str, Any], limit: int) -> Filled:
        """Returns the values for a spec's references; at most `limit` bytes in total."""
        waited = {*spec.get("after", ()), *spec.get("after_any", ())}
        values: dict[int, Any] = {}
        files: dict[str, Any] = {}
        size = 0
        whole, outputs = _uses(spec)
        for job in results_of(spec):
            path = self._successors(job)
            last = self._facts.get(path[-1])
            if last is None or waited.isdisjoint(path):
                return Filled({}, {}, f"job {job}, whose result is an argument, does not exist")
            if last.state != COMPLETED and job not in whole:
                values[job] = None  # Without a result, it has no outputs.
                continue
            if last.state != COMPLETED:
                how = "open" if last.state is None else STATE_BY_CODE[last.state]
                why = f"job {last.id}, whose result is an argument, has no result: it is {how}"
                return Filled({}, {}, why)
            body = self._bodies.get(last.id, b"null")
            size += len(body)
            values[job] = _decode(body)
            missing = [name for name in outputs.get(job, ()) if not _has(values[job], name)]
            if missing:
                return Filled({}, {}, _without(last.id, values[job], missing[0]))
            if _FILE in body:
                values[job] = replaced(values[job], FILE, partial(_of_job, last.id))
                files[f"{RESULT} {last.id}"] = {"job": last.id}
        if size > limit:
            why = f"results as arguments have {size} bytes, the limit is {limit}"
            return Filled({}, {}, why)
        return Filled(values, files)

    def known(self, spec: Mapping[str, Any]) -> dict[int, Any]:
        """Returns the results of the completed ones, by the id that a spec names."""
        newest = {job: self._successors(job)[-1] for job in results_of(spec)}
        return {
            job: _decode(self._bodies.get(last, b"null"))
            for job, last in newest.items()
            if last in self._facts and self._facts[last].state == COMPLETED
        }

    def _successors(self, job: int) -> list[int]:
        path = [job]
        while (fact := self._facts.get(path[-1])) is not None and fact.superseded_by:
            path.append(fact.superseded_by)
        return path


def results_of(spec: Mapping[str, Any]) -> Sequence[int]:
    """Returns the jobs whose results a stored spec names, each once."""
    found = map(job_of, references_in(spec.get("args"), RESULT))
    return list(dict.fromkeys(job for job in found if type(job) is int))


def resolved(values: Mapping[int, Any], reference: Any) -> Any:
    """Returns the value of a reference to a result; the reference itself if that is unknown."""
    job = job_of(reference)
    if job not in values:
        return {RESULT: reference}
    whole = not isinstance(reference, dict)
    return values[job] if whole else output_of(values[job], reference["output"])


def _uses(spec: Mapping[str, Any]) -> tuple[set[int], dict[int, list[str]]]:
    """Returns the jobs whose whole results a spec names, and the outputs of others."""
    whole: set[int] = set()
    outputs: dict[int, list[str]] = {}
    for reference in references_in(spec.get("args"), RESULT):
        if isinstance(reference, dict):
            outputs.setdefault(job_of(reference), []).append(str(reference.get("output")))
        else:
            whole.add(reference)
    return whole, outputs


def _without(job: int, result: Any, name: str) -> str:
    if _has(result, FILE):
        return f"the result of job {job} is too large to take the output {name} from it"
    return f"job {job} has no output {name}"


def _has(result: Any, name: str) -> bool:
    return isinstance(result, dict) and name in result
