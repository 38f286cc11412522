"""What files mean: parameters, matrices, arrays, workflows inside workflows."""

import json
from pathlib import Path
from typing import Any

import pytest

from windlass.domain.job.job import JobSpec
from windlass.messages.jobs import NewWorkflow
from windlass.workflows import expand, expand_file
from windlass.workflows.nodes import Misdescribed
from windlass.workflows.reading import read_text


def expanded(text: str, folder: Path, **parameters: Any) -> dict[str, JobSpec]:
    """The jobs of a file by name."""
    file = folder / "w.yaml"
    file.write_text(text)
    jobs = expand_file(file, parameters).jobs
    return {job.name or "": job for job in jobs}


def argv(job: JobSpec) -> list[str]:
    words: list[str] = job.args["argv"]
    return words


EVERY_FIELD = """
name: release
namespace: team
priority: high
key: release-1
fail_fast: true
labels: {team: core, year: 2030}
jobs:
  first:
    run: [make, -j, 8]
    env: {CFLAGS: -O2, LEVEL: 1.50}
    inputs: [{artifact: source.tar, job: 7}]
    artifacts: [out/*.tar]
    requires: memory>=4GiB
    resources: {cpus: 2}
    target: arm64
    secrets: [KEY]
    queue: batch
    priority: -2
    timeout: 15m
    idle_timeout: 60
    retries: 2
    retry_on: [execution]
    allow_failure: true
    concurrency: {key: deploy, max: 2}
    labels: {kind: build}
    not_before: 2030-01-02T03:04:05Z
    start_before: 2030-01-02T04:04:05Z
    finish_before: 2030-01-02T05:04:05Z
    capability_grace: never
  second:
    task: python
    args: {function: "a:b", args: [1, null, true, 1.5]}
    after: [first, 12]
    after_any: first
    unblock: manual
on_failure:
- webhook: {url: "https://example.org/hook", secret: s}
"""


def test_every_field_arrives(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(EVERY_FIELD)
    made = expand_file(file, {})
    assert made.workflow == NewWorkflow(
        name="release",
        namespace="team",
        priority="high",
        key="release-1",
        fail_fast=True,
        labels={"team": "core", "year": "2030"},
        on_failure=[{"webhook": {"url": "https://example.org/hook", "secret": "s"}}],
    )
    first, second = made.jobs
    assert (first.task, first.namespace, second.namespace) == ("shell", "team", "team")
    assert first.args == {
        "argv": ["make", "-j", "8"],
        "env": {"CFLAGS": "-O2", "LEVEL": "1.50"},
        "inputs": [{"artifact": "source.tar", "job": 7}],
        "artifacts": ["out/*.tar"],
    }
    assert (first.requires, first.resources, first.target) == (
        ("memory>=4GiB",), {"cpus": 2}, "arm64",
    )  # fmt: skip
    assert (first.queue, first.priority, first.timeout, first.idle_timeout) == (
        "batch", -2, 900, 60,
    )  # fmt: skip
    assert (first.retries, first.retry_on, first.allow_failure) == (2, ("execution",), True)
    assert (first.labels, first.secrets) == ({"kind": "build"}, ("KEY",))
    assert first.not_before == "2030-01-02T03:04:05.000Z"
    assert first.start_before == "2030-01-02T04:04:05.000Z"
    assert first.finish_before == "2030-01-02T05:04:05.000Z"
    assert first.capability_grace == "never"
    assert first.concurrency is not None
    assert (first.concurrency.key, first.concurrency.max) == ("deploy", 2)
    assert second.args == {"function": "a:b", "args": [1, None, True, 1.5]}
    assert (second.after, second.after_any, second.unblock) == (("first", 12), ("first",), "manual")


def test_a_timeout_beside_the_jobs_is_that_of_jobs_without_their_own(tmp_path: Path) -> None:
    text = """
name: w
parameters: {limit: {default: 2h}}
timeout: ${{ parameters.limit }}
jobs:
  plain: {run: "true"}
  own: {run: "true", timeout: 15m}
  any: {run: "true", timeout: none}
  like: {workflow: {name: v, jobs: {x: {run: "true"}}}}
  other: {workflow: {name: v, timeout: 5, jobs: {x: {task: shell, args: {argv: [x]}}}}}
"""
    timeouts = {name: job.timeout for name, job in expanded(text, tmp_path).items()}
    assert timeouts == {"plain": 7_200, "own": 900, "any": "none", "like/x": 7_200, "other/x": 5}
    jobs = expanded(text, tmp_path, limit="none")
    assert (jobs["plain"].timeout, jobs["like/x"].timeout) == ("none", "none")
    assert {
        job.timeout for job in expanded(text.replace("timeout: $", "# $"), tmp_path).values()
    } == {None, 900, "none", 5}


def test_json_and_data_mean_the_same_as_yaml(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(EVERY_FIELD)
    by_yaml = expand_file(file, {})
    data = {
        "name": "smile 😀",
        "jobs": {"a": {"run": ["echo", "a/b", "😀", "\t"], "retries": 2}, "b": {"run": ["x"]}},
    }
    as_json = tmp_path / "w.json"
    as_json.write_text(json.dumps(data, indent="\t"))
    by_json = expand_file(as_json, {})
    assert (by_json.workflow, by_json.jobs) == expand(data, {})
    assert by_json.workflow.name == "smile 😀"
    assert argv(by_json.jobs[0]) == ["echo", "a/b", "😀", "\t"]
    line = EVERY_FIELD[: EVERY_FIELD.index("LEVEL")].count("\n") + 1
    assert by_yaml.place_of(0, "args.env.LEVEL").line == line


def test_parameters_keep_their_type_alone_and_are_text_in_text(tmp_path: Path) -> None:
    text = """
name: release-${{ parameters.version }}
parameters:
  version: {}
  tries: {type: integer, default: 2}
  ratio: {type: number, default: 0.5}
  strict: {type: boolean, default: false}
jobs:
  build-${{parameters.version}}:
    task: own
    args: {tries: "${{ parameters.tries }}", text: "n=${{ parameters.tries }}", plain: "$${{ x }}",
           ratio: "${{ parameters.ratio }}", strict: "${{ parameters.strict }}"}
    retries: ${{ parameters.tries }}
    allow_failure: ${{ parameters.strict }}
"""
    file = tmp_path / "w.yaml"
    file.write_text(text)
    made = expand_file(file, {"version": "1.10", "tries": "5", "strict": "true"})
    assert made.workflow.name == "release-1.10"
    assert made.workflow.parameters == {
        "version": "1.10", "tries": 5, "ratio": 0.5, "strict": True,
    }  # fmt: skip
    (job,) = made.jobs
    assert job.name == "build-1.10"
    assert job.args == {
        "tries": 5, "text": "n=5", "plain": "${{ x }}", "ratio": 0.5, "strict": True,
    }  # fmt: skip
    assert (job.retries, job.allow_failure) == (5, True)


def test_what_a_parameter_contains_is_not_looked_at_again(tmp_path: Path) -> None:
    text = """
name: w
parameters: {x: {}}
jobs:
  a: {run: [echo, "${{ parameters.x }}", "<${{ parameters.x }}>"], count: 2}
"""
    jobs = expanded(text, tmp_path, x="${{ index }}")
    assert argv(jobs["a[1]"]) == ["echo", "${{ index }}", "<${{ index }}>"]


MATRIX = """
name: w
jobs:
  build:
    matrix:
      python: [3.10, 3.11]
      os: [linux, mac]
      exclude: [{python: 3.10, os: mac}]
      include: [{python: 4.0, os: linux}]
    run: [build, "${{ matrix.python }}", "--os=${{ matrix.os }}"]
  test:
    matrix: {python: [3.10, 3.11]}
    run: [test]
    after: "build[*]"
  one:
    run: [one]
    after: ["build[3.11,mac]"]
  all:
    run: [all]
    after: build
"""


def test_a_matrix_makes_jobs_named_by_their_values(tmp_path: Path) -> None:
    jobs = expanded(MATRIX, tmp_path)
    builds = [name for name in jobs if name.startswith("build")]
    assert builds == [
        "build[3.10,linux]", "build[3.11,linux]", "build[3.11,mac]", "build[4.0,linux]",
    ]  # fmt: skip
    assert argv(jobs["build[3.10,linux]"]) == ["build", "3.10", "--os=linux"]
    assert jobs["all"].after == tuple(builds)
    assert jobs["one"].after == ("build[3.11,mac]",)


def test_matching_jobs_wait_for_each_other(tmp_path: Path) -> None:
    jobs = expanded(MATRIX, tmp_path)
    assert jobs["test[3.10]"].after == ("build[3.10,linux]",)
    assert jobs["test[3.11]"].after == ("build[3.11,linux]", "build[3.11,mac]")


def test_arrays_count_from_zero_and_match_by_index(tmp_path: Path) -> None:
    text = """
name: w
parameters: {n: {type: integer}}
jobs:
  part: {run: [part, "${{ index }}"], count: "${{ parameters.n }}", matrix: {v: [a, b]}}
  check: {run: [check], count: 3, after: "part[*]"}
"""
    jobs = expanded(text, tmp_path, n=3)
    assert argv(jobs["part[b,2]"]) == ["part", "2"]
    assert jobs["check[1]"].after == ("part[a,1]", "part[b,1]")


def test_a_hundred_thousand_jobs_are_joined_by_one(tmp_path: Path) -> None:
    text = "name: w\njobs: {a: {run: [x], count: 100000}, b: {run: [x], after: a}}\n"
    jobs = expanded(text, tmp_path)
    assert len(jobs) == 100_001
    assert jobs["b"].after == tuple(f"a[{number}]" for number in range(100_000))


INNER = """
name: inner
parameters: {what: {default: nothing}}
priority: low
jobs:
  start: {run: [echo, "${{ parameters.what }}"]}
  left: {run: [echo], after: start, priority: 5}
  right: {run: [echo], after: start}
"""


def test_a_workflow_inside_is_tied_by_its_starts_and_ends(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "inner.yaml").write_text(INNER)
    text = """
name: outer
parameters: {x: {default: 7}}
jobs:
  before: {run: [echo]}
  sub:
    workflow: parts/inner.yaml
    matrix: {v: [1, 2]}
    parameters: {what: "v${{ matrix.v }}-${{ parameters.x }}"}
    after: before
  later: {run: [echo], after: sub}
  after-one: {run: [echo], after: ["sub[1]"]}
  after-inner: {run: [echo], after: ["sub[2]/start"]}
"""
    jobs = expanded(text, tmp_path)
    assert argv(jobs["sub[2]/start"]) == ["echo", "v2-7"]
    assert jobs["sub[1]/start"].after == ("before",)
    assert jobs["sub[1]/left"].after == ("sub[1]/start",)
    assert jobs["later"].after == ("sub[1]/left", "sub[1]/right", "sub[2]/left", "sub[2]/right")
    assert jobs["after-one"].after == ("sub[1]/left", "sub[1]/right")
    assert jobs["after-inner"].after == ("sub[2]/start",)
    assert (jobs["sub[1]/left"].priority, jobs["sub[1]/right"].priority) == (5, "low")


def test_a_workflow_may_stand_in_the_job_itself_with_names_of_its_own() -> None:
    inner = {
        "name": "inner",
        "parameters": {"x": {"default": "inner"}},
        "jobs": {"a": {"run": ["echo", "${{ parameters.x }}"]}},
    }
    description = {
        "name": "outer",
        "parameters": {"x": {"default": "outer"}},
        "jobs": {"sub": {"workflow": inner}, "a": {"run": ["echo", "${{ parameters.x }}"]}},
    }
    workflow, jobs = expand(description, {})
    assert [(job.name, argv(job)) for job in jobs] == [
        ("sub/a", ["echo", "inner"]), ("a", ["echo", "outer"]),
    ]  # fmt: skip
    assert workflow.parameters == {"x": "outer"}


def test_inputs_name_the_job_they_come_from(tmp_path: Path) -> None:
    inner = """
name: inner
jobs:
  make: {run: [x], artifacts: [out], matrix: {v: [1, 2]}}
  use:
    matrix: {v: [1, 2]}
    run: [x]
    after: "make[*]"
    inputs:
    - {job: "make[*]", artifact: out/a.txt, path: "in-${{ matrix.v }}"}
    - {job: 7, artifact: b.txt}
"""
    (tmp_path / "inner.yaml").write_text(inner)
    jobs = expanded("name: w\njobs: {sub: {workflow: inner.yaml}}\n", tmp_path)
    assert jobs["sub/use[2]"].args["inputs"] == [
        {"artifact": {"$lookup": "@sub/make[2]/out/a.txt"}, "path": "in-2"},
        {"artifact": "b.txt", "job": 7},
    ]


def test_anchors_and_merges_save_typing(tmp_path: Path) -> None:
    text = """
name: w
jobs:
  a: &common
    run: [a]
    timeout: 5m
    env: &env {A: "1"}
  b: {<<: *common, run: [b]}
  c: {run: [c], env: *env}
"""
    jobs = expanded(text, tmp_path)
    assert (argv(jobs["b"]), jobs["b"].timeout) == (["b"], 300)
    assert jobs["c"].args["env"] == {"A": "1"}


@pytest.mark.parametrize(
    ("word", "value"),
    [("on", "on"), ("no", "no"), ("007", "007"), ("3.10.1", "3.10.1"), ("1e3", 1000.0),
     ("~", None), ("true", True), ("12", 12), ("-3", -3), ("0x10", "0x10"), ("1_000", "1_000"),
     ("12:30", "12:30"), ("2030-01-01", "2030-01-01"), ("1" * 30, "1" * 30), (".inf", ".inf")],
)  # fmt: skip
def test_plain_words_mean_what_they_mean_in_json(word: str, value: object) -> None:
    found = read_text(f"x: {word}", "w.yaml").entries()["x"]
    assert found.value == value
    assert type(found.value) is type(value)
    assert found.text == word


def test_an_empty_workflow_is_one(tmp_path: Path) -> None:
    assert expanded("name: w\njobs: {}\n", tmp_path) == {}


def test_a_list_parameter_is_an_axis_or_words_and_has_commas_in_text(tmp_path: Path) -> None:
    text = """
name: w
parameters:
  systems: {default: [debian, 3.10], choices: [debian, alpine, 3.10]}
  words: {type: list, default: []}
jobs:
  build:
    matrix: {os: "${{ parameters.systems }}"}
    run: [echo, "${{ matrix.os }}", "of ${{ parameters.systems }}"]
  say: {run: "${{ parameters.words }}"}
"""
    jobs = expanded(text, tmp_path, words="echo, a b")
    assert set(jobs) == {"build[debian]", "build[3.10]", "say"}
    assert argv(jobs["build[3.10]"]) == ["echo", "3.10", "of debian,3.10"]
    assert argv(jobs["say"]) == ["echo", "a b"]
    given = expanded(text, tmp_path, words="echo", systems="alpine,debian")
    assert set(given) == {"build[alpine]", "build[debian]", "say"}
    for wrong, words in (("arch", "one of debian, alpine, 3.10"), ("", "a list of values")):
        with pytest.raises(Misdescribed, match=words):
            expanded(text, tmp_path, words="echo", systems=wrong)


def test_the_jobs_of_a_workflow_inside_may_all_be_allowed_to_fail(tmp_path: Path) -> None:
    (tmp_path / "inner.yaml").write_text(INNER)
    text = """
name: outer
jobs:
  sub: {workflow: inner.yaml, allow_failure: true}
  around: {workflow: {name: x, jobs: {sub: {workflow: inner.yaml}}}, allow_failure: true}
  other: {workflow: inner.yaml, after: sub}
"""
    jobs = expanded(text, tmp_path)
    allowed = {name for name, job in jobs.items() if job.allow_failure}
    assert allowed == {name for name in jobs if not name.startswith("other/")}
