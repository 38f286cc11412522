"""Job arrays, and commands on all jobs that pass a filter."""

import pytest

from tests.cli.program import Program
from windlass.cli.commands.jobs.submit import array_of
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import InvalidInput


def test_an_array_numbers_its_jobs(up: Program) -> None:
    words = ("--count", "3", "--name", "part", "--label", "kind=array")
    numbers = up.text("submit", *words, "--", "echo", "part {index}").split()
    assert len(numbers) == 3
    for place, number in enumerate(numbers):
        assert up.text("logs", "-f", number) == f"part {place}"
    names = {job["name"] for job in up.json("jobs", "--label", "kind=array")}
    assert names == {"part[0]", "part[1]", "part[2]"}


def test_arrays_are_filled_in_wherever_text_stands() -> None:
    request = JobSpec(
        task="t",
        args={"a": ["{index}", {"b": "x{index}"}], "n": 1},
        name="n{index}",
        key="k{index}",
    )
    first, second = array_of(request, 2)
    assert second.args == {"a": ["1", {"b": "x1"}], "n": 1}
    assert (first.name, second.name, second.key) == ("n0", "n1", "k1")
    for count in (0, 100_001):
        with pytest.raises(InvalidInput, match="count"):
            array_of(request, count)
    with pytest.raises(InvalidInput, match="different for each job"):
        array_of(JobSpec(task="t", key="k"), 2)


def test_jobs_are_canceled_retried_and_prioritized_by_filter(up: Program) -> None:
    up.text("queues", "pause", "many")
    up.text("submit", "--count", "4", "--queue", "many", "--", "true")
    chosen = ("--where", "queue=many")
    asked = up("cancel", *chosen)
    assert asked.returncode == 2
    assert "give --yes to cancel 4 jobs" in asked.stderr
    assert up.text("prioritize", *chosen, "--adjustment", "7", "-y") == "prioritize: 4 of 4 jobs"
    assert {job["priority"]["effective"] for job in up.json("jobs", "--queue", "many")} == {7}
    assert up.json("cancel", *chosen, "--yes")["applied"] == 4
    assert up.text("cancel", *chosen, "--yes") == "cancel: 0 of 0 jobs"
    again = up.text("retry", *chosen, "--state", "canceled", "--yes")
    assert again == "retry: 4 of 4 jobs"
    assert len(up.json("jobs", "--queue", "many", "--state", "queued")) == 4
    up.text("cancel", *chosen, "--yes")
    up.text("queues", "resume", "many")


def test_a_change_of_many_jobs_that_changes_nothing_fails(up: Program) -> None:
    none = up("prioritize", "--where", "queue=nobody-uses-it", "--adjustment", "1", "-y")
    assert (none.returncode, none.stdout) == (4, "prioritize: 0 of 0 jobs\n")
    up.text("queues", "pause", "held")
    up.text("submit", "--queue", "held", "--", "true")
    token = up.json("tokens", "create", "else", "--role", "submitter")["token"]
    words = ("prioritize", "--where", "queue=held", "--adjustment", "1", "-y")
    refused = up(*words, WINDLASS_TOKEN=token)
    assert refused.returncode == 5, refused.stdout
    assert "may only change its own jobs" in refused.stdout
    assert up(*words, "--json", WINDLASS_TOKEN=token).returncode == 5
    up.text("cancel", "--where", "queue=held", "--yes")
    up.text("queues", "resume", "held")


def test_what_is_chosen_must_be_clear(up: Program) -> None:
    for words, said in (
        (("cancel",), "give job ids, or --where"),
        (("cancel", "1", "--where", "queue=q"), "exclude each other"),
        (("retry",), "no jobs are selected"),
        (("prioritize", "--adjustment", "1"), "no jobs are selected"),
        (("cancel", "--where", "color=red", "--yes"), "one of queue, task"),
        (("cancel", "--where", "workflow=x", "--yes"), "workflow=ID"),
        (("submit", "--count", "0", "--", "true"), "from 1 to"),
    ):
        done = up(*words)
        assert done.returncode == 2, (words, done.stdout, done.stderr)
        assert said in done.stderr, (words, done.stderr)


def test_deadlines_are_times_or_durations_from_now(up: Program) -> None:
    up.text("queues", "pause", "later")
    number = up.text(
        "submit", "--queue", "later", "--not-before", "1m", "--start-before", "1h",
        "--finish-before", "2050-01-01T00:00:00Z", "--capability-grace", "never", "--", "true",
    )  # fmt: skip
    shown = up.json("show", number)
    assert shown["finish_before"] == "2050-01-01T00:00:00.000Z"
    assert shown["not_before"] < shown["start_before"] < shown["finish_before"]
    assert shown["capability_grace"] == "never"
    assert "start before" in up.text("show", number)
    up.text("cancel", number)
    up.text("queues", "resume", "later")
    wrong = up("submit", "--start-before", "yesterday", "--", "true")
    assert wrong.returncode == 2
    assert "or a duration from now such as 15m" in wrong.stderr


def test_an_impossible_job_is_rejected_at_once_if_asked(up: Program) -> None:
    number = up.text("submit", "--requires", "gpus>=64", "--capability-grace", "0", "--", "true")
    shown = up.json("show", number)
    assert shown["state"] == "rejected"
    assert shown["reason"].startswith("capability_mismatch: the only known worker: needs gpus ≥ 64")


def test_operators_say_what_else_a_machine_can_run(up: Program) -> None:
    (worker,) = up.json("workers")
    name, own = worker["name"], worker["metadata"]["system:architectures"]
    assert (
        up.text("workers", "set", name, f"system:architectures={own[0]},armhf", "rack=7") == "done"
    )
    assert up.json("workers", "show", name)["metadata"]["system:architectures"] == [own[0], "armhf"]
    assert up("run", "--target", "armhf", "--requires", "rack==7", "--", "true").returncode == 0
    for clause in ("rack in 6,7", "rack>=7", "rack<8", "rack!=8", "os has linux",
                   "python:version matches >=3.0", "python:available==true"):  # fmt: skip
        assert up("run", "--requires", clause, "--", "true").returncode == 0, clause
    assert up.text("workers", "set", name, "rack=", "system:architectures=") == "done"
    shown = up.json("workers", "show", name)
    assert (shown["static"], shown["metadata"]["system:architectures"]) == ({}, own)
    for words in (("workers", "set", name), ("workers", "set", name, "rack")):
        assert up(*words).returncode == 2


def test_what_waits_for_a_job_lifts_it(up: Program) -> None:
    up.text("queues", "pause", "line")
    first = up.text("submit", "--queue", "line", "--", "true")
    behind = up.text("submit", "--queue", "line", "--after", first, "--priority", "9", "--", "true")
    told = up.json("prioritize", behind, "--adjustment", "1")
    assert (told["base"], told["adjustment"], told["effective"]) == (9, 1, 10)
    assert 9.9 < up.json("show", first)["priority"]["inherited"] < 10.1
    assert "for jobs that wait for it" in up.text("show", first)
    up.text("cancel", behind, first)
    up.text("queues", "resume", "line")
