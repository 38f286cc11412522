"""`windlass audit`: reads, exports and follows the audit log."""

import json
import signal

from tests.cli.program import Program


def test_the_audit_log_is_printed_exported_and_followed(up: Program) -> None:
    with up.running("audit", "--follow", "--since", "1h") as process:
        assert process.stdout is not None
        up.text("workers", "code")
        while "/api/v1/codes" not in (line := process.stdout.readline()):
            assert line
        assert "admin from 127.0.0.1: POST /api/v1/codes (code for any worker, valid until " in line
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    exported = [json.loads(line) for line in up.text("audit", "--json").splitlines()]
    assert any(entry["action"] == "POST /api/v1/codes" for entry in exported)
    assert up.text("audit", "--after", str(exported[-1]["id"])) == ""
    wrong = up("audit", "--since", "soon")
    assert wrong.returncode == 2
