"""Errors as the commands print them, with advice where the server's own message has none."""

import os
import ssl
from collections.abc import Collection
from typing import TYPE_CHECKING, Final, NoReturn

from windlass.cli.output.exit_codes import REFUSED, USAGE, exit_code
from windlass.cli.output.text import RED, warn
from windlass.domain.values.errors import InvalidInput, Unreachable, WindlassError, causes_of
from windlass.domain.values.names import did_you_mean

if TYPE_CHECKING:
    from cyclopts import CycloptsError, UnknownOptionError

UNAUTHORIZED: Final = 401
SIGNED: Final = ("the token", "oidc:", "jwt:")  # how refusals of signed tokens begin
SET: Final = "--set"  # sets any core option
NUMBERS: Final[dict[type | None, str]] = {int: "a whole number", float: "a number"}


def fail(error: WindlassError, words: Collection[str] = ()) -> NoReturn:
    """Prints an error about a command line of these words, and exits with its code."""
    shown = explain_untrusted(error) or explain_unauthorized(error) or _as_typed(error, words)
    warn(f"windlass: {shown}", RED)
    raise SystemExit(exit_code(shown))


def _as_typed(error: WindlassError, words: Collection[str]) -> WindlassError:
    """Names a field by the option that set it: --slots, not slots."""
    if type(error) is not InvalidInput or error.of:
        return error
    flag = f"--{error.field.replace('_', '-')}"
    if flag not in {word.partition("=")[0] for word in words}:
        return error
    return InvalidInput(flag, error.expected, error.got, error.hint)


def fail_on_file(error: OSError) -> NoReturn:
    """Prints which file could not be used, if that is known, and why, and exits."""
    named = f"cannot use {os.fsdecode(error.filename)}" if error.filename else "cannot write"
    warn(f"windlass: {named}: {error.strerror}", RED)
    raise SystemExit(REFUSED)


def fail_usage(error: "CycloptsError") -> NoReturn:
    """Prints what is wrong with the command line and exits."""
    warn(f"windlass: {_usage_message(error)}", RED)
    raise SystemExit(USAGE)


def _usage_message(error: "CycloptsError") -> str:
    from cyclopts import (
        CoercionError,
        MissingArgumentError,
        UnknownOptionError,
        UnusedCliTokensError,
    )

    if isinstance(error, CoercionError) and error.target_type in NUMBERS and error.token:
        name = error.token.keyword or (error.argument.name if error.argument else "the argument")
        return f"expected {name} to be {NUMBERS[error.target_type]}, got {error.token.value}"
    if isinstance(error, UnknownOptionError):
        return _unknown_option(error)
    if isinstance(error, MissingArgumentError) and error.argument:
        given = [token.keyword for token in error.argument.tokens if token.keyword]
        if error.keyword or given:
            return f"{error.keyword or given[-1]} needs a value"
        if not error.unused_tokens:  # One of them may be a misspelt option.
            return f"{_command_of(error)} needs {error.argument.name}"
    app = error.app
    if not isinstance(error, UnusedCliTokensError) or app is None:
        return str(error).strip()
    unused = error.unused_tokens or []
    commands = [name for name in app if not name.startswith("-") and app[name].show]
    if not commands or not unused:
        return f"unexpected argument: {' '.join(unused)}"
    group = " ".join(error.command_chain or ())
    known = f" (known: {', '.join(commands)})"
    return f"unknown command: {group} {unused[0]}{did_you_mean(unused[0], commands) or known}"


def _unknown_option(error: "UnknownOptionError") -> str:
    """Says which command has no such option; it may have stood before the command."""
    from windlass.cli.before_command import SHARED, TOKEN_FLAGS, TOKEN_HINT

    name = error.token.keyword or error.token.value
    command = _command_of(error)
    if name in TOKEN_FLAGS:
        return f"{command} has no option {name}: {TOKEN_HINT}"
    if name in SHARED:
        return f"{command} has no option {name}"
    known = [flag for argument in error.argument_collection or () for flag in argument.names]
    if SET in known and (replacement := _replaced_by(name)):
        return f"{command} has no option {name}: {replacement}"
    return f"{command} has no option {name}{_suggested(name, known)}"


def _command_of(error: "CycloptsError") -> str:
    return f"`{' '.join(('windlass', *(error.command_chain or ())))}`"


def _replaced_by(flag: str) -> str | None:
    """Says what replaces the flag that a core option had before `--set`."""
    from windlass.domain.config import describe_options

    for option in describe_options():
        if option.flag == flag:
            key = option.shown
            return f"set {key} in the configuration file (--config), or give {SET} {key}=VALUE"
    return None


def _suggested(name: str, known: Collection[str]) -> str:
    """Returns a suggestion for an unknown option; its dashes and value do not count."""
    from windlass.domain.job.job import ELSEWHERE

    word = name.partition("=")[0].strip("-")
    if len(word) < 2:
        return ""
    ours = ELSEWHERE.get(word.replace("-", "_"), "").replace("_", "-")
    if f"--{ours}" in known:
        return f"; did you mean --{ours}?"
    words = {flag.removeprefix("--") for flag in known if flag.startswith("--")}
    return did_you_mean(word, words).replace("did you mean ", "did you mean --")


def explain_unauthorized(error: WindlassError) -> WindlassError | None:
    """Returns a better error if the server does not know this command's token."""
    if getattr(error, "status", None) != UNAUTHORIZED or error.code == "http":
        return None
    from windlass.client.transport import ServerError

    if error.message.startswith(SIGNED):
        advice = "sign in again with `windlass login`, or present a new token"
        return ServerError(UNAUTHORIZED, error.code, f"{error.message}; {advice}")
    origin = "WINDLASS_TOKEN" if os.environ.get("WINDLASS_TOKEN") else "the data directory"
    return ServerError(
        UNAUTHORIZED,
        error.code,
        f"the server does not accept the token from {origin}: set WINDLASS_TOKEN to a valid one "
        "(create one with `windlass tokens create`), or pass the server's data directory with "
        "--data",
    )


def explain_untrusted(error: BaseException) -> Unreachable | None:
    """Returns a better error if the server's certificate is not trusted."""
    for cause in causes_of(error):
        # HTTP libraries wrap the error that knows the reason in others of the same type.
        why = getattr(cause, "verify_message", None)
        if isinstance(cause, ssl.SSLCertVerificationError) and why:
            return Unreachable(
                f"the server's certificate is not trusted: {why}; pass the certificate of the "
                "authority that signed it with --tls-ca FILE or WINDLASS_TLS_CA"
            )
    return None
