"""Starting, looking after and stopping an installation."""

import stat

from tests.cli.program import Program


def test_the_admin_token_is_its_owners_alone(up: Program) -> None:
    assert stat.S_IMODE((up.data / "admin-token").stat().st_mode) == 0o600
    assert stat.S_IMODE(up.data.stat().st_mode) == 0o700


def test_the_worker_is_shown_and_managed(up: Program) -> None:
    (worker,) = up.json("workers")
    assert worker["slots"] == 2
    assert up.text("workers", "drain", worker["name"]) == "done"
    assert up.json("workers", "show", str(worker["id"]))["status"] == "draining"
    assert up.text("workers", "enable", worker["name"]) == "done"
    wrong = up("workers", "set", worker["name"], "tasks_denylist=shel")
    assert wrong.returncode != 0
    assert "metadata.tasks_denylist" in wrong.stderr
    assert "did you mean shell?" in wrong.stderr
    unknown = up("workers", "drain", "nobody")
    assert unknown.returncode == 4
    assert f"worker nobody does not exist; known: {worker['name']}" in unknown.stderr
    assert up.text("workers", "code").startswith("enrol_")
    assert up.text("workers", "code", "--worker", "w", "--takeover").startswith("enrol_")


def test_tokens_are_made_used_and_revoked(up: Program) -> None:
    made = up.json("tokens", "create", "ci", "--role", "viewer")
    token = made["token"]
    (address,) = (f["detail"] for f in up.json("doctor") if f["check"] == "server known")
    assert up("jobs", WINDLASS_TOKEN=token, WINDLASS_SERVER=address).returncode == 0
    refused = up("submit", "--", "true", WINDLASS_TOKEN=token)
    assert refused.returncode == 5
    assert "submitter" in refused.stderr
    assert up.text("tokens", "revoke", str(made["info"]["id"])) == "done"
    refused = up("jobs", WINDLASS_TOKEN=token)
    assert refused.returncode == 5
    assert "does not accept the token from WINDLASS_TOKEN" in refused.stderr


def test_a_token_is_rotated_and_its_owner_named(up: Program) -> None:
    made = up.json("tokens", "create", "nightly", "--role", "viewer", "--namespace", "farm")
    assert up.text("whoami", WINDLASS_TOKEN=made["token"]) == "nightly (viewer, namespaces farm)"
    secret = up.text("tokens", "rotate", "nightly")
    assert up.text("whoami", WINDLASS_TOKEN=secret) == "nightly (viewer, namespaces farm)"
    assert up("whoami", WINDLASS_TOKEN=made["token"]).returncode == 5
    assert all("last_used_at" in row for row in up.json("tokens"))
    assert up.text("tokens", "revoke", "nightly") == "done"
    unknown = up("tokens", "revoke", "nightyl")
    assert (unknown.returncode, "token nightyl does not exist" in unknown.stderr) == (4, True)


def test_a_server_without_sign_in_says_so(up: Program) -> None:
    refused = up("login")
    assert refused.returncode == 4
    assert "sign-in" in refused.stderr
    assert up.text("logout") == "nothing to do"


def test_names_stand_for_artifacts(up: Program) -> None:
    args = '{"argv": ["sh", "-c", "echo hi > out.txt"], "artifacts": ["out.txt"]}'
    number = up.text("submit", "--task", "shell", "--args", args)
    assert up("logs", "-f", number).returncode == 0
    assert up.text("names", "set", "greetings/first", f"{number}/out.txt").startswith("greetings")
    (name,) = up.json("names", "list")
    assert (name["name"], name["job"], name["artifact"]) == (
        "greetings/first", int(number), "out.txt",
    )  # fmt: skip
    assert "greetings/first" in up.text("names")
    wrong = up("names", "set", "greetings/first", "out.txt")
    assert (wrong.returncode, "JOB/NAME" in wrong.stderr) == (2, True)


def test_dead_letters_are_listed(up: Program) -> None:
    assert up("run", "--name", "dead", "--", "sh", "-c", "exit 3").returncode == 3
    assert up("run", "--name", "alive", "--", "true").returncode == 0
    listed = {job["name"] for job in up.json("jobs", "--dead")}
    assert "dead" in listed
    assert "alive" not in listed


def test_changes_are_told_to_programs_too(up: Program) -> None:
    assert up.json("queues", "pause", "told") == {"applied": True}
    assert up.json("queues", "resume", "told") == {"applied": True}
    assert up.json("queues", "resume", "told") == {"applied": False}


def test_verify_and_doctor_find_nothing_wrong(up: Program) -> None:
    assert up.json("verify") == {"violations": []}
    findings = {finding["check"]: finding["state"] for finding in up.json("doctor")}
    assert "problem" not in findings.values()
    sound = {"python", "sqlite", "configuration", "data directory", "disk", "workers"}
    assert {findings[check] for check in sound} == {"ok"}
    assert findings["isolation process"] == "ok"
    assert {"isolation user", "isolation sandbox", "limits of jobs"} <= findings.keys()
