"""Arguments and results of functions as annotated, and results as arguments, from end to end."""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

import windlass
from tests.embedded import values
from windlass.domain.values.errors import Conflict, InvalidInput


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[windlass.Client]:
    file = tmp_path_factory.mktemp("values") / "jobs.db"
    with windlass.Client.embedded(file, workers=2) as opened:
        yield opened


def test_arguments_and_results_arrive_as_annotated(client: windlass.Client) -> None:
    hour = timedelta(hours=1)
    later = client.submit(values.later, values.MORNING, by=hour).result(timeout=60)
    assert later == values.Visit("a", values.MORNING.at + hour, frozenset({"x", "later"}))
    found = client.submit(values.days, date(2026, 1, 31), count=2).result(timeout=60)
    assert found == (date(2026, 1, 31), date(2026, 2, 1))


def test_json_of_other_callers_is_read_by_annotation(client: windlass.Client) -> None:
    path = values.later.path
    visit = {"who": "b", "at": "2026-01-31T08:00:00Z"}
    fits = windlass.JobSpec(task="python", args={"function": path, "args": [visit, "15m"]})
    assert client.submit(fits).result(timeout=60).at.minute == 15
    wrong = windlass.JobSpec(task="python", args={"function": path, "args": [{"who": 1}, 5]})
    job = client.submit(wrong)
    ended = job.wait(timeout=60)
    assert ended.state == "rejected"
    assert "args.visit.who to be str, got 1" in (ended.reason or "")


def test_a_result_that_is_not_as_annotated_fails_the_job(client: windlass.Client) -> None:
    with pytest.raises(windlass.JobFailed, match="the result of wrong to be int"):
        client.submit(values.wrong).result(timeout=60)


def test_handles_are_arguments(client: windlass.Client) -> None:
    sums = client.submit_many([values.add.job(n, n) for n in range(10)])
    total = client.submit(values.total, [one.output for one in sums], start=sums[1].output)
    assert total.result(timeout=60) == 92
    nested = client.submit(values.basket, values.Basket(total.output, [1, sums[2].output]))
    assert nested.result(timeout=60) == values.Basket(97, [1, 4])
    assert client.submit(values.names, {"a"}).result(timeout=60) == ["a"]


def test_jobs_of_a_workflow_block_are_arguments_of_each_other(client: windlass.Client) -> None:
    with client.workflow("sums") as workflow:
        one = workflow.submit(values.add, 1, 2)
        two = workflow.submit(values.add, one.output, one.output)
        last = workflow.submit(values.total, [one.output, two.output])
    assert last.result(timeout=60) == 9
    with client.workflow("other") as other:
        foreign = other.submit(values.add, two.output, 1)
        with client.workflow("inner") as inner, pytest.raises(Conflict):
            inner.submit(values.add, foreign.output, 1)
    assert foreign.result(timeout=60) == 7


def test_other_tasks_take_references_too(client: windlass.Client) -> None:
    three = client.submit(values.add, 1, 2)
    job = client.submit("shell", argv=["sh", "-c", "echo $0 $SUM", three], env={"SUM": three})
    assert job.wait(timeout=60).state == "completed"
    assert b"".join(job.logs()) == b"3 3\n"
    with pytest.raises(InvalidInput, match="memory"):
        client.submit("shell", argv=["echo"], memory=three)


def test_large_results_travel_as_artifacts(client: windlass.Client) -> None:
    large = client.submit(values.repeated, "x" * 1_000, 2_000)
    assert large.result(timeout=60) == ["x" * 1_000] * 2_000
    (artifact,) = large.info().artifacts
    assert (artifact.name, artifact.size > 2_000_000) == ("result.json", True)
    assert client.submit(values.count, large.output).result(timeout=60) == 2_000


MIB = 1024 * 1024


def test_large_arguments_travel_beside_the_job(client: windlass.Client) -> None:
    pages = values.Pages(["x" * 1_000] * 2_000, 1)
    job = client.submit(values.letters, pages, "yy", "z" * MIB, start=5)
    assert job.result(timeout=60) == 2_000_000 + 1 + 2 + MIB + 5
    first, small, last = job.info().args["args"]
    assert [first["$file"]["json"], last["$file"]["json"], small] == [True, True, "yy"]
    assert last["$file"]["size"] == MIB + 2
    assert job.info().artifacts == []


def test_a_mapped_and_a_planned_call_may_have_large_arguments(client: windlass.Client) -> None:
    text = "x" * (2 * MIB)
    mapped = client.map(values.repeated, [text, text], [1, 2])
    assert [len(job.result(timeout=60)) for job in mapped] == [1, 2]
    with client.workflow("large") as workflow:
        number = workflow.submit(values.add, 1, 2)
        planned = workflow.submit(values.letters, values.Pages([text]), start=number.output)
    assert planned.result(timeout=60) == 2 * MIB + 3


def test_references_stay_with_the_job_among_large_arguments(client: windlass.Client) -> None:
    number = client.submit(values.add, 1, 2)
    pages = values.Pages(["x" * MIB, "y"], number.output)
    job = client.submit(values.letters, pages)
    assert job.result(timeout=60) == MIB + 1 + 3
    (sent,) = job.info().args["args"]
    assert sent["first"] == {"$result": number.id}
    assert sent["texts"]["$file"]["json"]


def test_values_that_look_like_references_survive_the_way(client: windlass.Client) -> None:
    value = {"deep": {"$file": "no file"}, "other": {"$literal": 1}, "text": "x" * MIB}
    assert client.submit(values.echo, value).result(timeout=60) == value


def test_a_job_retried_by_hand_still_has_its_large_arguments(client: windlass.Client) -> None:
    job = client.submit(values.fail_with_text, "x" * (2 * MIB))
    with pytest.raises(windlass.JobFailed, match=f"{2 * MIB} letters"):
        job.result(timeout=60)
    with pytest.raises(windlass.JobFailed, match=f"{2 * MIB} letters"):
        job.retry().result(timeout=60)


def test_the_key_of_a_job_compares_large_arguments(client: windlass.Client) -> None:
    keyed = values.repeated.options(key="large", key_for="1h")
    first = client.submit(keyed, "x" * (2 * MIB), 0)
    assert client.submit(keyed, "x" * (2 * MIB), 0).id == first.id
    with pytest.raises(Conflict):
        client.submit(keyed, "y" * (2 * MIB), 0)


def test_an_argument_that_is_no_json_is_refused_by_name(
    client: windlass.Client, tmp_path: Path
) -> None:
    (tmp_path / "broken.json").write_text("{")
    file = client.upload(tmp_path / "broken.json")
    reference = {"$file": {"sha256": file.sha256, "name": file.name, "json": True}}
    args = {"function": values.echo.path, "args": [reference]}
    ended = client.submit(windlass.JobSpec(task="python", args=args)).wait(timeout=60)
    assert ended.state == "rejected"
    assert "JSON in the file broken.json" in (ended.reason or "")


def test_too_many_values_for_uploads_are_refused_as_before(client: windlass.Client) -> None:
    with pytest.raises(InvalidInput, match="at most 1048576 bytes"):
        client.submit(values.letters, values.Pages([]), *["x" * 1_000] * 3_000)


def test_files_that_functions_return_are_artifacts(client: windlass.Client, tmp_path: Path) -> None:
    made = client.submit(values.report, 3)
    path = made.result(timeout=60)
    assert (path.name, path.read_text()) == ("report.txt", "line\n" * 3)
    assert [artifact.name for artifact in made.info().artifacts] == ["out/report.txt"]
    made.download("out/report.txt", tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == path.read_text()
    assert client.submit(values.size_of, made.output).result(timeout=60) == 15
    found = client.submit(values.report_async, 2).result(timeout=60)
    assert found["report"].read_text() == "line\n" * 2


def test_a_function_cannot_return_a_file_from_elsewhere(client: windlass.Client) -> None:
    with pytest.raises(windlass.JobFailed, match="a file in the scratch directory"):
        client.submit(values.outside).result(timeout=60)


def test_local_files_are_sent_with_the_job(client: windlass.Client, tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(b"x" * 100_000)
    assert client.submit(values.size_of, path).result(timeout=60) == 100_000
    uploaded = client.upload(path, name="other.bin")
    assert client.submit(values.size_of, uploaded.as_path).result(timeout=60) == 100_000
    seen = client.submit(values.where, {"a": path, "b": None}).result(timeout=60)
    assert [name for name in seen if name] == ["data.bin"]
    with client.workflow("files") as workflow:
        size = workflow.submit(values.size_of, path)
    assert size.result(timeout=60) == 100_000
    with pytest.raises(InvalidInput, match=r"args\.path of size_of to be a file on this"):
        client.submit(values.size_of, tmp_path / "missing")


def test_a_retried_job_still_has_its_files(client: windlass.Client, tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text("data")
    job = client.submit(values.fail_with, path)
    with pytest.raises(windlass.JobFailed, match="data"):
        job.result(timeout=60)
    with pytest.raises(windlass.JobFailed, match="data"):
        job.retry().result(timeout=60)
    assert job.info().artifacts == []


def test_a_file_that_nobody_uploaded_is_refused(client: windlass.Client) -> None:
    args = {"function": values.size_of.path, "args": [{"$file": {"sha256": "0" * 64}}]}
    with pytest.raises(InvalidInput, match="files uploaded to namespace default"):
        client.submit(windlass.JobSpec(task="python", args=args))


def test_no_job_reads_the_files_of_others(client: windlass.Client, tmp_path: Path) -> None:
    path = tmp_path / "secret.txt"
    path.write_text("secret")
    mine = client.submit(values.size_of, path)
    mine.wait(timeout=60)
    (digest,) = [file["$file"]["sha256"] for file in mine.info().args["args"]]
    by_digest, by_job = (
        windlass.JobSpec(
            task="python",
            args={"function": values.size_of.path, "args": [{"$file": file}]},
            namespace="theirs",
        )
        for file in ({"sha256": digest}, {"job": mine.id, "artifact": digest})
    )
    with pytest.raises(InvalidInput, match="files uploaded to namespace theirs"):
        client.submit(by_digest)
    ended = client.submit(by_job).wait(timeout=60)
    assert ended.state == "rejected"
    assert re.search(rf"files that exist, got artifact \w+… of job {mine.id}\b", ended.reason or "")


def test_children_are_arguments_of_each_other(client: windlass.Client) -> None:
    last = client.submit(values.fan, 3).result(timeout=60)
    assert client.job(last).result(timeout=60) == 6


def test_a_job_cannot_send_files_of_its_worker(client: windlass.Client, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    with pytest.raises(windlass.JobFailed, match="without local files inside a job"):
        client.submit(values.sends, str(tmp_path / "a")).result(timeout=60)
