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


class _Spec(msgspec.Struct, frozen=True):
    task: str
    args: msgspec.Raw = msgspec.Raw(b"null")
    kind: str | None = None


class _Argv(msgspec.Struct, frozen=True):
    argv: list[str] = []


class _Function(msgspec.Struct, frozen=True):
    function: str = ""


_spec: Final = msgspec.json.Decoder(_Spec).decode
_argv: Final = msgspec.json.Decoder(_Argv).decode
_function: Final = msgspec.json.Decoder(_Function).decode


def kinds_of(spec: bytes) -> tuple[str, ...]:
    """Returns the kinds of a stored job, the narrowest first."""
    job = _spec(spec)
    if job.kind:
        return (_cut(job.kind),)
    try:
        if job.task == "shell":
            return _of_program(_argv(job.args).argv) or (job.task,)
        if job.task == "python":
            return (_cut(_function(job.args).function) or job.task,)
    except msgspec.DecodeError:  # Its arguments made it fail, or will.
        return (job.task,)
    return (job.task,)


def program_or_task(spec: bytes) -> str:
    """Returns what a stored job runs, for labels and spans, without any of its arguments."""
    job = _spec(spec)
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
