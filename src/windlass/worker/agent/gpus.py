"""The GPUs of a machine, as `nvidia-smi` or `rocm-smi` lists them, and which worker offers them.

An index is the GPU's number in CUDA_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES. A worker that was
itself started with only some of them visible, for example by another scheduler, offers only those.

Each worker of a machine finds all GPUs. The worker that offers one holds a lock on the GPU's file;
the system releases it when the worker dies.
"""

import fcntl
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import structlog

from windlass.domain.matching.clauses import resource_key
from windlass.domain.matching.indices import AMD, GPUS, VENDOR, indices_key
from windlass.worker.agent.metadata import output_of

NVIDIA: Final = "nvidia"
_NVIDIA_FIELDS: Final = "index,uuid,name,memory.total,driver_version"
_AMD_QUESTIONS: Final = (
    "--showproductname", "--showmeminfo", "vram", "--showuniqueid", "--showdriverversion",
)  # fmt: skip
_CARD: Final = re.compile(r"card([0-9]{1,9})")
DIGITS: Final = 18  # significant digits of a number


class Gpu(NamedTuple):
    """One GPU; `memory` is in bytes, 0 if unknown."""

    number: str  # its index
    uuid: str
    model: str
    memory: int
    driver: str


async def find_gpus(environ: Mapping[str, str], take: Callable[[str], bool]) -> dict[str, Any]:
    """Returns metadata of the GPUs that jobs may use; prefers NVIDIA's if there are both kinds.

    `take` is called with the UUID of each, and returns whether this worker may have it.
    """
    listed = await output_of(
        "nvidia-smi", f"--query-gpu={_NVIDIA_FIELDS}", "--format=csv,noheader,nounits"
    )
    if found := parse_nvidia(listed or ""):
        seen = visible(found, environ.get("CUDA_VISIBLE_DEVICES"))
        return describe(NVIDIA, [gpu for gpu in seen if take(gpu.uuid)])
    listed = await output_of("rocm-smi", *_AMD_QUESTIONS, "--json")
    seen = visible(parse_amd(listed or ""), environ.get("ROCR_VISIBLE_DEVICES"))
    return describe(AMD, [gpu for gpu in seen if take(gpu.uuid)])


def parse_nvidia(text: str) -> list[Gpu]:
    """Reads lines such as `0, GPU-5f0c…, NVIDIA A100-SXM4-40GB, 40960, 535.104.05`."""
    found = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) >= 5 and parts[0].isdigit():
            index, uuid, *model, mib, driver = parts
            memory = _amount(mib) * 2**20
            found.append(Gpu(index, uuid, ", ".join(model), memory, driver))
    return found


def parse_amd(text: str) -> list[Gpu]:
    """Reads rocm-smi's JSON: `card0` and so on, and `system`; key names differ in case.

    Card numbers may have gaps, where another card has no ROCm; the runtime counts without gaps.
    """
    try:
        # Warnings may surround it.
        body = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except (ValueError, RecursionError):
        return []
    system = body.get("system")
    driver = _value(system, "driver version") if isinstance(system, dict) else ""
    cards = sorted(
        (
            (int(match[1]), value)
            for key, value in body.items()
            if (match := _CARD.fullmatch(key)) and isinstance(value, dict)
        ),
        key=lambda card: card[0],
    )
    found = []
    for position, (number, card) in enumerate(cards):
        unique = _value(card, "unique id").removeprefix("0x")
        uuid = f"GPU-{unique}" if unique not in ("", "N/A") else f"card{number}"
        model = _value(card, "card series") or _value(card, "device name")
        memory = _value(card, "vram total memory (b)")
        found.append(Gpu(str(position), uuid, model, _amount(memory), driver))
    return found


def _amount(text: str) -> int:
    """Returns a number from a program's output; 0 for anything else, such as [N/A]."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS else 0


def _value(card: Mapping[str, Any], name: str) -> str:
    return next((str(value) for key, value in card.items() if key.lower() == name), "")


def visible(gpus: Sequence[Gpu], setting: str | None) -> list[Gpu]:
    """Returns the GPUs that a variable such as CUDA_VISIBLE_DEVICES selects; unset: all."""
    if setting is None:
        return list(gpus)
    wanted = [part.strip() for part in setting.split(",")]
    return [gpu for gpu in gpus if any(map(_names(gpu), wanted))]


def _names(gpu: Gpu) -> Callable[[str], bool]:
    def is_named(part: str) -> bool:
        # A unique prefix of a UUID is enough.
        return part == gpu.number or (part.startswith("GPU-") and gpu.uuid.startswith(part))

    return is_named


def describe(vendor: str, gpus: Sequence[Gpu]) -> dict[str, Any]:
    """Returns the metadata. `gpu:memory` is the smallest GPU's, since a job may get any of them."""
    facts: dict[str, Any] = {resource_key(GPUS): len(gpus)}
    if gpus:
        facts[indices_key(GPUS)] = [gpu.number for gpu in gpus]
        facts[VENDOR] = vendor
        facts["gpu:models"] = sorted({gpu.model for gpu in gpus if gpu.model})
        facts["gpu:driver"] = gpus[0].driver
        if memory := min(gpu.memory for gpu in gpus):
            facts["gpu:memory"] = memory
    return facts


log = structlog.get_logger()


class GpuLocks:
    """The locks of one worker, in a folder that all workers of a user share."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(tempfile.gettempdir()) / f"windlass-gpus-{os.getuid()}"
        self._held: list[int] = []

    def take(self, name: str) -> bool:
        """Takes a GPU for this worker; False if another worker has it."""
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            if self._folder.lstat().st_uid != os.getuid():
                raise PermissionError(f"{self._folder} belongs to another user")
            path = self._folder / name.replace("/", "_")
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            log.warning("gpu_not_locked", gpu=name, error=str(error))
            return True  # We cannot know about other workers.
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            log.info("gpu_taken", gpu=name, message="another worker of this machine offers it")
            return False
        self._held.append(fd)
        return True

    def close(self) -> None:
        """Releases all of them."""
        for fd in self._held:
            os.close(fd)
        self._held.clear()
