"""What every client can do with workers, queues, schedules, events and ended jobs."""

import pytest

import windlass

TEMPLATE = {"name": "t", "jobs": {"one": {"task": "shell", "args": {"argv": ["true"]}}}}
JOB = windlass.named("shell").options(queue="q")


def use_all(client: windlass.Client) -> None:
    """Goes through all of them once."""
    (worker,) = client.workers.list()
    assert client.workers.show(worker.name).id == client.workers.show(worker.id).id == worker.id
    assert client.workers.set(worker.name, {"rack": 7}) is True
    assert client.workers.show(worker.name).metadata["rack"] == 7
    assert client.workers.drain(worker.name) is True
    assert client.workers.drain(worker.name) is False
    assert client.workers.enable(worker.name) is True
    assert client.workers.explain(worker.name).worker == worker.name
    with pytest.raises(windlass.NotFound, match="worker nobody"):
        client.workers.disable("nobody")
    use_queues(client)
    use_workflows(client)
    use_plans(client)
    delete_jobs(client)


def use_queues(client: windlass.Client) -> None:
    assert client.queues.pause("q") is True
    waiting = client.submit(JOB, argv=["true"])
    assert client.queues.show("q").paused
    assert client.queues.limit("q", max_running=3) is True
    assert client.queues.show("q").max_running == 3
    with pytest.raises(windlass.InvalidInput, match="max_runing"):
        client.queues.limit("q", max_runing=3)
    assert client.queues.resume("q") is True
    assert waiting.wait(timeout=60).state == "completed"
    with pytest.raises(windlass.NotFound, match="queue nothing"):
        client.queues.show("nothing")
    moves = [event.to for event in client.events(job=waiting.id, kind="job")]
    assert (moves[0], moves[-1]) == ("queued", "completed")
    (last,) = client.events(job=waiting.id, last=1)
    assert last.to == "completed"
    with pytest.raises(windlass.InvalidInput, match=r"unknown query parameter jobs"):
        list(client.events(jobs=1))  # type: ignore[call-arg]


def use_workflows(client: windlass.Client) -> None:
    made = []
    for name in ("early", "late"):
        with client.workflow(name, labels={"kind": name}, key=f"{name} key") as workflow:
            workflow.submit("shell", argv=["true"])
        made.append(workflow.id)
    early, late = made
    newest = client.workflows(limit=2)
    assert [(found.id, found.name) for found in newest] == [(late, "late"), (early, "early")]
    for filters in ({"name": "early"}, {"label": "kind=early"}, {"key": "early key"}):
        assert [found.id for found in client.workflows(**filters)] == [early]  # type: ignore[arg-type]
    assert client.workflows(name="early", state=["canceled", "canceling"]) == []
    with pytest.raises(windlass.UnknownName, match=r"unknown filter lable; did you mean label\?"):
        client.workflows(lable="a=b")  # type: ignore[call-arg]


def use_plans(client: windlass.Client) -> None:
    assert client.templates.put("t", TEMPLATE).applied
    assert "t" in [found.name for found in client.templates.list()]
    assert client.templates.show("t").version == 1
    assert client.schedules.put("s", "0 3 * * *", template="t").applied
    assert client.schedules.pause("s") is True
    assert client.schedules.show("s").paused
    assert client.schedules.resume("s") is True
    assert client.schedules.run("s").state == "started"
    assert "s" in [found.name for found in client.schedules.list()]
    with pytest.raises(windlass.InvalidInput, match="overlaps"):
        client.schedules.put("s", "0 3 * * *", overlaps="skip")
    assert client.schedules.remove("s") is True
    assert client.templates.remove("t") is True


def delete_jobs(client: windlass.Client) -> None:
    done = client.submit(JOB, argv=["echo", "hi"])
    done.wait(timeout=60)
    open_job = client.submit(JOB.options(delay="1h"), argv=["true"])
    with pytest.raises(windlass.Conflict, match="it has not ended: cancel it first"):
        open_job.delete()
    assert done.delete() is True
    for gone in (done.info, lambda: list(done.logs())):
        with pytest.raises(windlass.NotFound, match=f"job {done.id}"):
            gone()
    open_job.cancel()
    refused, deleted = client.delete([999_999, open_job.id]).jobs
    assert (refused.applied, deleted.applied) == (False, True)
