"""Delivers an alarm to a webhook or by e-mail, and says why if that fails."""

import asyncio
import hashlib
import os
import smtplib
import ssl
from email.message import EmailMessage
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from windlass.domain.values.errors import WindlassError
from windlass.domain.values.quantities import format_moment
from windlass.domain.webhooks import check_url, sign
from windlass.ports.clock import Clock
from windlass_fuzz.config.alarm_settings import AlarmSettings, MailSettings
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.findings.markdown import one_line
from windlass_fuzz.sources.http_api import HttpApi, Service

MAIL_S: Final = 30.0
PATIENCE_MS: Final = 10_000
ID_LENGTH: Final = 32
MAX_CHARACTERS: Final = 1_000

Place = Literal["webhook", "mail"]


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with the build of a commit; `given_up` says that it is no longer fuzzed."""

    solver: str
    commit: str
    why: str
    runs: int
    at: str
    given_up: bool = False
    event: str = "unhealthy"

    @property
    def subject(self) -> str:
        how = "is given up" if self.given_up else "cannot be fuzzed"
        return one_line(f"{self.solver}: {self.commit[:12]} {how}")


def alarm_of(
    solver: str, commit: str, why: str, runs: int, now_ms: int, given_up: bool = False
) -> Alarm:
    """Returns an alarm."""
    said = one_line(why)[:MAX_CHARACTERS]
    return Alarm(
        solver=solver, commit=commit, why=said, runs=runs, at=format_moment(now_ms),
        given_up=given_up,
    )  # fmt: skip


def places_of(settings: AlarmSettings) -> list[Place]:
    """Returns where alarms are sent."""
    mail: list[Place] = [] if settings.mail is None else ["mail"]
    return ["webhook", *mail] if settings.webhook else mail


def id_of(alarm: Alarm) -> str:
    """Returns the id of an alarm, by which a receiver recognises a duplicate."""
    return hashlib.sha256(msgspec.json.encode(alarm)).hexdigest()[:ID_LENGTH]


async def deliver(place: Place, alarm: Alarm, settings: AlarmSettings, clock: Clock) -> str:
    """Sends an alarm to one place; returns why it did not arrive, "" if it did."""
    try:
        if place == "webhook":
            await _post(alarm, settings, clock)
        elif settings.mail is not None:
            await asyncio.to_thread(_mail, alarm, settings.mail)  # noqa: TID251 - smtplib blocks
    except (OSError, smtplib.SMTPException, WindlassError) as error:
        how = "did not reach the webhook" if place == "webhook" else "was not mailed"
        server = settings.mail.server if place == "mail" and settings.mail is not None else ""
        return f"the alarm {how}: {_reason(error, server)}"
    return ""


def _reason(error: Exception, server: str) -> str:
    """Returns what went wrong; the operating system's message does not name the host."""
    if not isinstance(error, OSError) or isinstance(error, smtplib.SMTPException):
        return str(error)
    return f"{server}: {error.strerror or error}".removeprefix(": ")


async def _post(alarm: Alarm, settings: AlarmSettings, clock: Clock) -> None:
    secret = os.environ.get(settings.secret, "")
    if not secret:
        message = f"set {settings.secret}: webhooks are signed with it"
        raise InvalidSetting("alarms.secret", message)
    try:
        check_url(settings.address, "alarms.webhook")
    except WindlassError:
        message = f"{settings.webhook} is not an address such as https://example.com/hook"
        raise InvalidSetting("alarms.webhook", message) from None
    parts = urlsplit(settings.address)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    body = msgspec.json.encode(alarm)
    now = clock.now_ms() // 1000
    headers = {
        "Windlass-Delivery": id_of(alarm),
        "Windlass-Timestamp": str(now),
        "Windlass-Signature": f"sha256={sign(secret, now, body)}",
    }
    # The path of some webhooks is a secret: it goes into no message.
    hidden = path if path not in ("", "/") else None
    service = Service("the webhook", settings.secret, header="")
    api = HttpApi(service, f"{parts.scheme}://{parts.netloc}", hidden, clock, PATIENCE_MS)
    try:
        await api.request("POST", path, body, headers, repeatable=True)
    finally:
        await api.close()


def _mail(alarm: Alarm, settings: MailSettings) -> None:
    """Sends an e-mail; blocks until the server has taken it."""
    password = os.environ.get(settings.password, "")
    if settings.user and not password:
        message = f"set {settings.password} to the password of {settings.user}"
        raise InvalidSetting("alarms.mail.password", message)
    context = ssl.create_default_context()
    with _connect(settings, context) as server:
        if settings.security == "starttls":
            server.starttls(context=context)
        if settings.user:
            server.login(settings.user, password)
        server.send_message(_message(alarm, settings))


def _connect(settings: MailSettings, context: ssl.SSLContext) -> smtplib.SMTP:
    if settings.security == "tls":
        return smtplib.SMTP_SSL(settings.host, settings.port, timeout=MAIL_S, context=context)
    return smtplib.SMTP(settings.host, settings.port, timeout=MAIL_S)


def _message(alarm: Alarm, settings: MailSettings) -> EmailMessage:
    message = EmailMessage()
    message["From"] = settings.sender
    message["To"] = ", ".join(settings.to)
    message["Subject"] = alarm.subject
    message["Auto-Submitted"] = "auto-generated"
    message["Message-ID"] = f"<{id_of(alarm)}@{settings.sender.rpartition('@')[2]}>"
    several = f"Its last {alarm.runs} runs" if alarm.runs > 1 else "Its last run"
    runs = f"\n{several} did nothing.\n" if alarm.runs else "\n"
    end = "It left the schedule.\n" if alarm.given_up else ""
    message.set_content(
        f"Solver {alarm.solver}, commit {alarm.commit}, {alarm.at}:\n\n{alarm.why}\n{runs}{end}\n"
        f"windlass fuzz status {alarm.solver}\n"
    )
    return message
