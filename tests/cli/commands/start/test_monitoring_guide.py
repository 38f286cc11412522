"""The commands of the guide to monitoring run."""

from pathlib import Path

import pytest

from tests.cli.guide import GUIDES, carry_out
from tests.cli.program import Program
from tests.deploy.files import alerts
from tests.support.debian import missing_reason

MISSING = missing_reason("promtool") or missing_reason("curl")


@pytest.mark.skipif(MISSING is not None, reason=MISSING or "")
def test_every_command_of_the_guide_runs(tmp_path: Path) -> None:
    program = Program(tmp_path / "data")
    with program.running("up", "--port", "0", "--workers", "0") as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "windlass is up at http://127.0.0.1:" in line
        address = line.split(" at ")[1].split()[0].rstrip(",;")
        token = (tmp_path / "data" / "admin-token").read_text().strip()
        said = carry_out(
            "monitoring.md", program, tmp_path, WINDLASS_TOKEN=token, WINDLASS_SERVER=address
        )
    assert 'windlass_queue_depth{queue="default"} 1.0' in said[0]
    assert "SUCCESS" in said[1]


def test_the_guide_explains_every_alert() -> None:
    text = (GUIDES / "monitoring.md").read_text()
    assert [name for name in alerts() if f"`{name}`" not in text] == []
