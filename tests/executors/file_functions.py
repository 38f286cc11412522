"""Functions that take, make and return files, as jobs in real processes."""

import subprocess
from pathlib import Path

import windlass


@windlass.task
def read(file: Path) -> str:
    return file.read_text()


@windlass.task
def write(text: str) -> Path:
    made = windlass.current().scratch / "made.txt"
    made.write_text(text)
    return made


@windlass.task
async def write_many(texts: dict[str, str]) -> dict[str, Path | None]:
    folder = await windlass.current().scratch_async()
    found: dict[str, Path | None] = {"none": None}
    for name, text in texts.items():
        found[name] = folder / name
        (folder / name).write_text(text)
    return found


@windlass.task
def pass_through_a_file(text: str) -> list[str]:
    """Lets another program read a file of this job; returns what it says, and the folder."""
    folder = windlass.current().scratch
    assert windlass.current().scratch == folder
    assert not any(folder.iterdir()), "another job's files are still here"
    (folder / "note").write_text(text)
    said = subprocess.run(["cat", "note"], cwd=folder, capture_output=True, text=True, check=True)
    return [said.stdout, str(folder)]


@windlass.task
async def pass_through_a_file_async(text: str) -> list[str]:
    folder = await windlass.current().scratch_async()
    (folder / "note").write_text(text)
    return [(folder / "note").read_text(), str(folder)]


@windlass.task
def is_there(path: str) -> bool:
    return Path(path).exists()
