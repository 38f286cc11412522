"""The part of a job's description that a worker reads."""

from typing import Any

import msgspec


class AttemptSpec(msgspec.Struct):
    """What to run, and with which secrets."""

    task: str
    args: msgspec.Raw = msgspec.Raw(b"null")
    workflow: int | None = None
    namespace: str = "default"
    secrets: tuple[str, ...] = ()
    resources: dict[str, Any] | None = None


read_spec = msgspec.json.Decoder(AttemptSpec).decode
