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
    unknown = up("workers", "drain", "nobody")
    assert unknown.returncode == 2
    assert worker["name"] in unknown.stderr
    assert up.text("workers", "code").startswith("enrol_")


def test_tokens_are_made_used_and_revoked(up: Program) -> None:
    made = up.json("tokens", "create", "ci", "--role", "viewer")
    token = made["token"]
    address = up.json("doctor")[1]["detail"]
    assert up("jobs", WINDLASS_TOKEN=token, WINDLASS_SERVER=address).returncode == 0
    refused = up("submit", "--", "true", WINDLASS_TOKEN=token)
    assert refused.returncode == 5
    assert "submitter" in refused.stderr
    assert up.text("tokens", "revoke", str(made["info"]["id"])) == "done"
    assert up("jobs", WINDLASS_TOKEN=token).returncode == 5


def test_verify_and_doctor_find_nothing_wrong(up: Program) -> None:
    assert up.json("verify") == {"violations": []}
    assert {finding["state"] for finding in up.json("doctor")} == {"ok"}
