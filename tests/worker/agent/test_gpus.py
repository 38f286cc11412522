"""GPUs that `nvidia-smi` and `rocm-smi` list; programs that print the same stand in for them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.running import run
from windlass.worker.agent.gpus import GpuLocks, find_gpus

NOBODY = 65534
NVIDIA = """\
0, GPU-5f0c1a2b-1111-2222-3333-444455556666, NVIDIA A100-SXM4-40GB, 40960, 535.104.05
1, GPU-77aa0b1c-1111-2222-3333-444455556666, NVIDIA A100-SXM4-80GB, 81920, 535.104.05
2, GPU-9e0d3c4d-1111-2222-3333-444455556666, NVIDIA A100-SXM4-40GB, 40960, 535.104.05
"""
AMD = {
    "card1": {
        "Unique ID": "0x3d4595974090853c", "VRAM Total Memory (B)": "68702699520",
        "VRAM Total Used Memory (B)": "10854400", "Card Series": "AMD Instinct MI210",
        "Card Model": "0x740f", "Card Vendor": "Advanced Micro Devices, Inc. [AMD/ATI]",
    },
    "card2": {
        "Unique ID": "0x9f1595974090853d", "VRAM Total Memory (B)": "68702699520",
        "Card series": "AMD Instinct MI210", "Card model": "0x740f",
    },
    "system": {"Driver version": "6.2.4"},
}  # fmt: skip


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the PATH, beside that of the shell."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def print_on(programs: Path, name: str, output: str, code: int = 0) -> None:
    (programs / f"{name}.txt").write_text(output)
    program = programs / name
    program.write_text(
        f'#!/bin/sh\necho "$*" >{programs / name}.asked\ncat {programs / name}.txt\nexit {code}\n'
    )
    program.chmod(0o755)


def find(**environ: str) -> dict[str, Any]:
    return run(find_gpus(environ, lambda _: True))


def test_nvidia_smi_tells_indices_models_memory_and_driver(programs: Path) -> None:
    print_on(programs, "nvidia-smi", NVIDIA)
    assert find() == {
        "system:gpus": 3,
        "indices:gpus": ["0", "1", "2"],
        "gpu:vendor": "nvidia",
        "gpu:models": ["NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB"],
        "gpu:memory": 40960 * 2**20,
        "gpu:driver": "535.104.05",
    }
    asked = (programs / "nvidia-smi.asked").read_text()
    assert "--query-gpu=index,uuid,name,memory.total,driver_version" in asked
    assert "--format=csv,noheader,nounits" in asked


def test_a_gpu_without_memory_of_its_own_is_counted(programs: Path) -> None:
    print_on(programs, "nvidia-smi", "0, GPU-1, NVIDIA GB10, [N/A], 580.95.05\n")
    found = find()
    assert (found["system:gpus"], found["gpu:models"]) == (1, ["NVIDIA GB10"])
    assert "gpu:memory" not in found


def test_rocm_smi_tells_the_same_and_the_runtime_counts_from_zero(programs: Path) -> None:
    print_on(programs, "rocm-smi", "WARNING: a low-power state\n" + json.dumps(AMD))
    assert find() == {
        "system:gpus": 2,
        "indices:gpus": ["0", "1"],
        "gpu:vendor": "amd",
        "gpu:models": ["AMD Instinct MI210"],
        "gpu:memory": 68702699520,
        "gpu:driver": "6.2.4",
    }


@pytest.mark.parametrize(
    ("setting", "indices"),
    [("2,0", ["0", "2"]), ("GPU-77aa", ["1"]), ("", []), ("-1", []), ("NoDevFiles", [])],
)
def test_a_worker_offers_only_the_gpus_it_was_given(
    programs: Path, setting: str, indices: list[str]
) -> None:
    print_on(programs, "nvidia-smi", NVIDIA)
    found = find(CUDA_VISIBLE_DEVICES=setting)
    assert found["system:gpus"] == len(indices)
    assert found.get("indices:gpus", []) == indices


def test_the_same_for_amd(programs: Path) -> None:
    print_on(programs, "rocm-smi", json.dumps(AMD))
    assert find(ROCR_VISIBLE_DEVICES="GPU-9f15")["indices:gpus"] == ["1"]


@pytest.mark.parametrize(
    ("output", "code"),
    [("No devices were found\n", 6), ("NVIDIA-SMI has failed\n", 9), ("garbage {", 0), ("", 0)],
)
def test_a_machine_whose_driver_is_silent_has_none(programs: Path, output: str, code: int) -> None:
    print_on(programs, "nvidia-smi", output, code)
    print_on(programs, "rocm-smi", output, code)
    assert find() == {"system:gpus": 0}


def test_a_machine_without_the_programs_has_none() -> None:
    assert find() == {"system:gpus": 0}


def test_workers_of_one_machine_do_not_offer_the_same_gpu(programs: Path) -> None:
    print_on(programs, "nvidia-smi", NVIDIA)
    first, second, third = (GpuLocks(programs / "locks") for _ in range(3))
    assert run(find_gpus({}, first.take))["system:gpus"] == 3
    assert run(find_gpus({}, second.take)) == {"system:gpus": 0}
    first.close()  # as when it dies
    assert run(find_gpus({"CUDA_VISIBLE_DEVICES": "1"}, third.take))["indices:gpus"] == ["1"]
    assert run(find_gpus({}, second.take))["indices:gpus"] == ["0", "2"]
    for locks in (second, third):
        locks.close()


def test_a_lock_folder_of_another_user_is_not_trusted(programs: Path) -> None:
    """Its owner could hold every lock, so that no worker offers a GPU."""
    folder = programs / "locks"
    theirs, ours = GpuLocks(folder), GpuLocks(folder)
    assert theirs.take("0")
    os.chown(folder, NOBODY, NOBODY)
    assert ours.take("0")
    folder.rename(programs / "real")
    folder.symlink_to(programs / "real")
    os.chown(programs / "real", os.getuid(), os.getgid())
    os.lchown(folder, NOBODY, NOBODY)
    assert ours.take("0")
    theirs.close()
    ours.close()
