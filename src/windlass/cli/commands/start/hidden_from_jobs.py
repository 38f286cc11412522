"""Hides from jobs what is not theirs: secrets, such as the worker's token, and folders.

Every process on the machine can read a command line, and every process of the same user can read
the environment that a process was started with; a worker's jobs can do both. So a worker that was
given secrets there restarts itself without them and reads them from an in-memory file instead.

A worker that a server here starts cannot know where the server keeps its token, its store and its
blobs, so the server names these folders in the environment.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import urlsplit

from windlass.worker.attempt.secrets import VARIABLE_START

PREFIX: Final = "fd:"
HELD: Final = "WINDLASS_HELD"  # The descriptor of the file with the secrets.
TOKEN: Final = "WINDLASS_TOKEN"
CODE: Final = "WINDLASS_CODE"
CODE_FLAG: Final = "--code"
KEEPS_NO_TOKEN: Final = "WINDLASS_KEEPS_NO_TOKEN"
RELOADED: Final = 75  # how a worker ends that is to be started again with a new code
HIDE_VARIABLE: Final = "WINDLASS_HIDE"  # folders with colons between them


def hold(secrets: Mapping[str, str]) -> int:
    """Returns the descriptor of an in-memory file for a program that is about to start."""
    held = os.memfd_create("secrets")
    os.write(held, json.dumps(dict(secrets)).encode())
    return held


def restart_without_secrets(words: Sequence[str]) -> None:
    """Restarts a worker that was given secrets; early, since it then loads everything again."""
    if HELD not in os.environ:
        take_secrets(_code_in(words))


def _code_in(words: Sequence[str]) -> str | None:
    """Returns the value of --code; the command line is not parsed yet."""
    for word, following in zip(words, (*words[1:], None), strict=True):
        if word == CODE_FLAG:
            return following
        if word.startswith(f"{CODE_FLAG}="):
            return word.partition("=")[2]
    return None


def take_secrets(code: str | None = None) -> dict[str, str]:
    """Returns the secrets in the environment, and the code of the command line.

    The first call restarts the program without them; the second finds them in a file.
    """
    held = os.environ.pop(HELD, None)
    if held is not None:
        found: dict[str, str] = json.loads(_read(int(held)))
        return found
    secrets = secrets_of(os.environ) | ({} if code is None else {CODE: code})
    if secrets:
        descriptor = hold(secrets)
        os.set_inheritable(descriptor, True)
        command = [sys.executable, *_without_code(sys.orig_argv[1:], code)]
        kept = without_secrets(os.environ)
        os.execve(sys.executable, command, {**kept, HELD: str(descriptor)})
    return {}


def _without_code(words: Sequence[str], code: str | None) -> list[str]:
    kept: list[str] = []
    for word in words:
        if word == code and kept and kept[-1] == CODE_FLAG:
            kept.pop()
        elif word != f"{CODE_FLAG}={code}":
            kept.append(word)
    return kept


def secrets_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that jobs must not see."""
    return {name: value for name, value in environ.items() if _is_secret(name)}


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns all other variables."""
    return {name: value for name, value in environ.items() if not _is_secret(name)}


def _is_secret(name: str) -> bool:
    return name in (TOKEN, CODE) or name.startswith(VARIABLE_START)


def hide_dsn(store: str) -> str:
    """Returns the store's address; the first call restarts the program without it."""
    if store.startswith(PREFIX):
        return _read(int(store.removeprefix(PREFIX)))
    command = [sys.executable, *sys.orig_argv[1:]]
    if any(store in word for word in (*command, *os.environ.values())):
        _restart(command, store)
    return store


def hold_text(text: str) -> int:
    """Returns the descriptor of an in-memory file that the next program inherits."""
    held = os.memfd_create("store")
    os.write(held, text.encode())
    os.set_inheritable(held, True)
    return held


def _restart(command: list[str], store: str) -> NoReturn:
    held = hold_text(store)
    kept = {name: value for name, value in os.environ.items() if store not in value}
    here = f"{PREFIX}{held}"
    os.execve(sys.executable, [word.replace(store, here) for word in command], kept)


def _read(held: int) -> str:
    os.lseek(held, 0, os.SEEK_SET)
    with open(held, encoding="utf-8") as file:
        return file.read()


def folders_of(data: Path, store: str, blobs: str) -> list[Path]:
    """Returns the folders of a server: its data directory, and those of its store and blobs.

    A store's folder that also holds the working directory or a home is left out, because jobs
    need it.
    """
    found = [data]
    file, folder = urlsplit(store), urlsplit(blobs)
    if file.scheme == "sqlite" and not _is_needed(Path(file.path).parent):
        found.append(Path(file.path).parent)
    if folder.scheme == "file" and not _is_needed(Path(folder.path)):
        found.append(Path(folder.path))
    return [path.absolute() for path in found]


def hide_from_jobs(folders: Iterable[Path], environ: MutableMapping[str, str]) -> None:
    """Tells workers that inherit this environment to hide folders."""
    known = hidden_folders(environ)
    environ[HIDE_VARIABLE] = os.pathsep.join(map(str, dict.fromkeys((*known, *folders))))


def hidden_folders(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Returns the folders that a worker was told to hide."""
    return tuple(Path(path) for path in environ.get(HIDE_VARIABLE, "").split(os.pathsep) if path)


def _is_needed(folder: Path) -> bool:
    home = Path(os.environ.get("HOME", "/")).absolute()
    return any(path.is_relative_to(folder.absolute()) for path in (Path.cwd(), home))
