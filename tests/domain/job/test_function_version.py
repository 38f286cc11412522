"""The function of a job is a clause of its shape, so that only workers that have it get it."""

from typing import Any

import pytest

from windlass.domain.config import Config
from windlass.domain.job.job import JobSpec
from windlass.domain.job.validation import Validator
from windlass.domain.matching.clauses import function_clause
from windlass.domain.matching.functions import MISSING, VERSIONS
from windlass.domain.matching.shapes import can_run
from windlass.domain.tasks.built_in import KINDS
from windlass.domain.values.errors import InvalidInput

VALIDATOR = Validator(Config(), {kind.name: kind for kind in KINDS})


def call(function: str, **options: Any) -> JobSpec:
    args = {"function": function, "args": [], "kwargs": {}}
    return JobSpec(task="python", args=args, **options)


def test_jobs_of_different_functions_have_different_shapes() -> None:
    jobs = VALIDATOR.validate_all([call("a:f"), call("a:f"), call("a:g"), call("a:f", version="2")])
    shapes = [job.shape for job in jobs]
    assert [shape.requires for shape in shapes] == [
        (function_clause("a:f"),),
        (function_clause("a:f"),),
        (function_clause("a:g"),),
        (function_clause("a:f==2"),),
    ]
    assert len({job.template.digest for job in jobs}) == 3


def test_shell_jobs_ask_for_no_function() -> None:
    job = VALIDATOR.validate(JobSpec(task="shell", args={"argv": ["true"]}))
    assert job.shape.requires == ()


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ({}, None),
        ({MISSING: {"a:g": "x"}}, None),
        ({MISSING: {"a:f": "no module a"}}, "cannot run version 2 of a:f: no module a"),
        ({MISSING: {"a:f==2": "version 1"}}, "cannot run version 2 of a:f: it has version 1"),
        ({MISSING: {"a:f==3": "version 1"}}, None),
        ({VERSIONS: {"a:f": "2"}}, None),
        ({VERSIONS: {"a:f": "1"}}, "cannot run version 2 of a:f: it has version 1"),
        ({MISSING: "nonsense", VERSIONS: ["a:f"]}, None),
    ],
)
def test_a_worker_is_a_match_unless_it_is_known_to_lack_it(
    metadata: dict[str, object], text: str | None
) -> None:
    shape = VALIDATOR.validate(call("a:f", version="2")).shape
    found = can_run(shape, metadata)
    assert (None if found is None else found.text) == text


@pytest.mark.parametrize(
    "spec",
    [
        call("a:f", version=""),
        call("a:f", version="x" * 101),
        call("a:f", version="\n"),
        JobSpec(task="shell", args={"argv": ["true"]}, version="2"),
    ],
)
def test_a_version_that_no_function_can_have_is_refused(spec: JobSpec) -> None:
    with pytest.raises(InvalidInput, match="version"):
        VALIDATOR.validate(spec)
