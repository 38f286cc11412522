"""Options that most commands share may stand before the command too, as in other programs.

They are moved behind it, where the command reads them: `--server URL workers list --json`.
"""

from collections.abc import Callable, Sequence
from typing import Final

from windlass.domain.values.errors import InvalidInput, UnknownName
from windlass.domain.values.names import did_you_mean

WITH_VALUE: Final = ("--server", "--data", "--tls-ca", "--namespace")
SWITCHES: Final = ("--json",)
SHARED: Final = (*WITH_VALUE, *SWITCHES)
# What the program itself takes, without a command.
OF_PROGRAM: Final = ("--help", "-h", "--help-all", "--version", "--install-completion")
TOKEN_HINT: Final = "set WINDLASS_TOKEN instead: other users of this machine can read command lines"
TOKEN_FLAGS: Final = ("--token", "--token-file")


def command_first(words: Sequence[str], is_group: Callable[[str], bool]) -> list[str]:
    """Returns the words with shared options behind the command, or the command of a group."""
    moved: list[str] = []
    rest = _take(list(words), moved)
    if not moved and not _is_option(rest):
        # Most command lines: nothing stands before the command.
        return _in_group(rest, is_group)
    if not rest or rest[0] == "--":
        hint = "`windlass --help` lists the commands"
        raise InvalidInput(" ".join(moved) or "--", "followed by a command", "none", hint)
    if rest[0] in OF_PROGRAM:
        return rest
    if _is_option(rest):
        raise _unknown(rest[0])
    return _with_options(_in_group(rest, is_group), moved)


def _in_group(words: list[str], is_group: Callable[[str], bool]) -> list[str]:
    """Moves options between a group and its command, as in `workers --server URL list`."""
    moved: list[str] = []
    rest = _take(words[1:], moved)
    if not moved or not rest or not is_group(words[0]):
        return words
    return _with_options([words[0], *rest], moved)


def _take(words: list[str], taken: list[str]) -> list[str]:
    """Takes the shared options at the start, and returns the words that follow."""
    while words:
        name, has_value, _ = words[0].partition("=")
        if words[0] in SWITCHES or (name in WITH_VALUE and has_value):
            size = 1
        elif name in WITH_VALUE:
            size = 2
            if len(words) < size or words[1].startswith("-"):
                raise InvalidInput(name, "followed by a value", "none")
        else:
            break
        taken += words[:size]
        words = words[size:]
    return words


def _with_options(words: list[str], options: list[str]) -> list[str]:
    """Returns the words with options at their end; what follows `--` belongs to a job."""
    end = words.index("--") if "--" in words else len(words)
    return [*words[:end], *options, *words[end:]]


def _is_option(words: list[str]) -> bool:
    return bool(words) and words[0].startswith("-") and words[0] not in OF_PROGRAM


def _unknown(word: str) -> UnknownName:
    name = word.partition("=")[0]
    hint = TOKEN_HINT if name in TOKEN_FLAGS else did_you_mean(name, SHARED)
    listed = f"{', '.join(SHARED)} or a command; other options follow the command"
    return UnknownName("option", name, listed, hint)
