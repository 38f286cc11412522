"""Kinds of work: jobs similar enough that past runs of one predict another.

A function is a kind of its own. So is a program with its first argument; the program alone is a
wider kind, for calls that have no history. A job may name its kind.
"""

import re
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Final

import msgspec

MAX_WORDS: Final = 3  # of a program and its first argument, with the options between them
NAME_LIMIT: Final = 120
# A program's name; anything else on a command line may be a secret.
_PROGRAM: Final = re.compile(r"[\w.+-]{1,60}")
_SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh"})


class StoredWork(msgspec.Struct, frozen=True):
    """The fields of a stored job that say what it runs."""

    task: str = ""
    name: str | None = None
    args: msgspec.Raw = msgspec.Raw(b"null")
    kind: str | None = None


class Command(msgspec.Struct, frozen=True):
    """A program with its arguments, or a function by its path."""

    argv: list[str] = []
    function: str = ""


decode_work: Final = msgspec.json.Decoder(StoredWork).decode
_command: Final = msgspec.json.Decoder(Command).decode


def command_of(work: StoredWork) -> Command:
    """Returns what a job runs; empty for arguments of another form."""
    try:
        return _command(work.args)
    except msgspec.DecodeError:  # They made it fail, or will.
        return Command()


def kinds_of(spec: bytes) -> tuple[str, ...]:
    """Returns the kinds of a stored job, the narrowest first."""
    job = decode_work(spec)
    if job.kind:
        return (_cut(job.kind),)
    if job.task == "shell":
        return _of_program(command_of(job).argv) or (job.task,)
    if job.task == "python":
        return (_cut(command_of(job).function) or job.task,)
    return (job.task,)


def program_or_task(spec: bytes) -> str:
    """Returns what a stored job runs, for labels and spans, without any of its arguments."""
    job = decode_work(spec)
    kind = kinds_of(spec)[-1]
    if job.kind is None and job.task == "shell" and not _PROGRAM.fullmatch(kind):
        return job.task
    return kind


def _of_program(argv: list[str]) -> tuple[str, ...]:
    if len(argv) > 2 and _base(argv[0]) in _SHELLS and argv[1].startswith("-"):
        argv = argv[2].split(None, MAX_WORDS) or argv
    if not argv:
        return ()
    words = [_base(argv[0])]
    for word in argv[1:MAX_WORDS]:
        words.append(word)
        if not word.startswith("-"):
            break
    narrow, wide = _cut(" ".join(words)), _cut(words[0])
    return (narrow, wide) if narrow != wide else (narrow,)


@lru_cache(1_000)
def _base(program: str) -> str:
    return PurePosixPath(program).name or program


def _cut(name: str) -> str:
    return name[:NAME_LIMIT].replace("\0", " ")
