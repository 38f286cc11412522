"""Reactions to the end of a workflow, version 1."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from windlass.domain.job.forms import Duration
from windlass.domain.job.job import JobSpec
from windlass.domain.schedules import ReactionKind
from windlass.domain.values.conversion import convert
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import parse_duration_ms
from windlass.domain.webhooks import check_url

REACTION_LIMIT: Final = 20  # of one occasion
DELAY_LIMIT: Final = 100
SECRET_LIMIT: Final = 1_000
CONCEALED: Final = "***"


class Webhook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A POST to `url`, signed with `secret`. The API never shows the secret."""

    url: str
    secret: str | None = None


class RetryDelays(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Retries the failed jobs after each of these delays, then gives up."""

    delays: list[Duration]


class Reaction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Exactly one of `submit`, `webhook` and `retry`.

    `submit` is a list of jobs, or the name of a template (`name` or `name@version`), which
    is started with `parameters`.
    """

    submit: str | list[JobSpec] | None = None
    parameters: dict[str, Any] = {}
    webhook: Webhook | None = None
    retry: RetryDelays | None = None

    @property
    def kind(self) -> ReactionKind:
        """Returns which of the three it is."""
        if self.webhook is not None:
            return ReactionKind.WEBHOOK
        return ReactionKind.SUBMIT if self.retry is None else ReactionKind.RETRY


def parse_reactions(values: Sequence[Mapping[str, Any]], field: str) -> list[Reaction]:
    """Parses reactions; raises `InvalidInput` naming what is wrong."""
    if len(values) > REACTION_LIMIT:
        raise InvalidInput(field, f"at most {REACTION_LIMIT} reactions", len(values))
    return [_parse(value, f"{field}[{place}]") for place, value in enumerate(values)]


def conceal(values: Sequence[Any]) -> list[Any]:
    """Returns the reactions without their secrets, at any depth."""
    return [_conceal(value) for value in values]


def conceal_body(description: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a description without the secrets of its webhooks."""
    return {name: _conceal(value) for name, value in description.items()}


def _conceal(value: Any) -> Any:
    if isinstance(value, list):
        return [_conceal(item) for item in value]
    if not isinstance(value, dict):
        return value
    shown = {name: _conceal(item) for name, item in value.items()}
    hook = shown.get("webhook")
    if isinstance(hook, dict) and hook.get("secret") is not None:
        shown["webhook"] = {**hook, "secret": CONCEALED}
    return shown


def _parse(value: Mapping[str, Any], field: str) -> Reaction:
    reaction = convert(value, Reaction, field)
    chosen = [n for n in ("submit", "webhook", "retry") if getattr(reaction, n) is not None]
    if len(chosen) != 1:
        expected = "exactly one of submit, webhook and retry"
        raise InvalidInput(field, expected, ", ".join(chosen) or "none")
    if reaction.webhook is not None:
        _check_webhook(reaction.webhook, f"{field}.webhook")
    if reaction.retry is not None:
        _check_delays(reaction.retry, f"{field}.retry.delays")
    if reaction.submit == "" or reaction.submit == []:
        raise InvalidInput(f"{field}.submit", "the name of a template, or jobs", reaction.submit)
    return reaction


def _check_webhook(hook: Webhook, field: str) -> None:
    check_url(hook.url, f"{field}.url")
    if not hook.secret or len(hook.secret) > SECRET_LIMIT:
        expected = f"text of 1 to {SECRET_LIMIT} characters, with which webhooks are signed"
        raise InvalidInput(f"{field}.secret", expected, "nothing" if not hook.secret else "more")
    if hook.secret == CONCEALED:
        raise InvalidInput(f"{field}.secret", "the secret itself", CONCEALED)


def _check_delays(retry: RetryDelays, field: str) -> None:
    if not 1 <= len(retry.delays) <= DELAY_LIMIT:
        raise InvalidInput(field, f"1 to {DELAY_LIMIT} durations", len(retry.delays))
    for place, delay in enumerate(retry.delays):
        parse_duration_ms(delay, f"{field}[{place}]")
