"""The admin token of the server on this machine goes to that server only."""

from pathlib import Path

import pytest

from windlass.client.settings import announce, find_server


@pytest.mark.parametrize(
    ("address", "is_sent"),
    [
        ("http://127.0.0.1:7420", True),
        ("http://localhost:7420", True),
        ("http://localhost:7420,http://127.0.0.1:7420", True),
        ("http://127.0.0.1:7421", False),
        ("http://localhost:7421", False),
        ("http://localhost:7420,http://127.0.0.1:7421", False),
        ("https://127.0.0.1:7420", False),
        ("http://127.0.0.1", False),
        ("http://far.example:7420", False),
        ("http://127.0.0.1:port", False),
    ],
)
def test_only_the_server_that_announced_itself_gets_the_local_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, is_sent: bool
) -> None:
    monkeypatch.delenv("WINDLASS_DATA", raising=False)
    monkeypatch.delenv("WINDLASS_TOKEN", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    data = tmp_path / "windlass"
    data.mkdir()
    (data / "admin-token").write_text("secret\n")
    announce(data, "http://127.0.0.1:7420")
    assert (find_server(address, None).token == "secret") == is_sent
