"""The part of the solver file about alarms: who is told about builds that cannot be fuzzed."""

import os
import re
from email.errors import HeaderParseError
from email.headerregistry import Address
from typing import Final, Literal

import msgspec

from windlass.domain.values.errors import InvalidInput
from windlass.domain.webhooks import check_url

FROM_ENVIRONMENT: Final = "env:"
MAX_TRIES: Final = 20
PORTS: Final = {"starttls": 587, "tls": 465, "none": 25}
_SERVER: Final = re.compile(r"(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>\d{1,5}))?\Z")


class MailSettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"sender": "from"}
):
    """E-mail settings: recipients, sender, and server (HOST or HOST:PORT).

    `password` names the environment variable with the password of `user`. Without encryption
    (`security: none`) no password is sent.
    """

    to: tuple[str, ...]
    sender: str
    server: str
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str = ""
    password: str = "WINDLASS_MAIL_PASSWORD"

    @property
    def host(self) -> str:
        found = _SERVER.match(self.server)
        return found["host"].strip("[]") if found else ""

    @property
    def port(self) -> int:
        found = _SERVER.match(self.server)
        return int(found["port"]) if found and found["port"] else PORTS[self.security]


class AlarmSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`webhook` is an address, or `env:NAME` to take it from an environment variable.

    `secret` names the variable with the secret that signs it. What does not arrive is sent again in
    later runs, `tries` times in total.
    """

    webhook: str = ""
    secret: str = "WINDLASS_ALARMS_SECRET"
    mail: MailSettings | None = None
    tries: int = 6

    @property
    def address(self) -> str:
        """Returns the address of the webhook."""
        if not self.webhook.startswith(FROM_ENVIRONMENT):
            return self.webhook
        return os.environ.get(self.webhook.removeprefix(FROM_ENVIRONMENT), "")


def check_alarm_settings(alarms: AlarmSettings) -> None:
    """Raises if a value makes no sense; the message names the key."""
    if not 1 <= alarms.tries <= MAX_TRIES:
        raise InvalidInput("alarms.tries", f"a number from 1 to {MAX_TRIES}", alarms.tries)
    if alarms.webhook and not alarms.webhook.startswith(FROM_ENVIRONMENT):
        check_url(alarms.webhook, "alarms.webhook")
    mail = alarms.mail
    if mail is None:
        return
    if not mail.to:
        raise InvalidInput("alarms.mail.to", "at least one address", [])
    for name, address in (("from", mail.sender), *(("to", one) for one in mail.to)):
        if not _is_address(address):
            raise InvalidInput(f"alarms.mail.{name}", "an e-mail address", address)
    if not _SERVER.match(mail.server) or not 0 < mail.port < 65_536:
        raise InvalidInput("alarms.mail.server", "HOST or HOST:PORT", mail.server)
    if mail.user and mail.security == "none":
        raise InvalidInput("alarms.mail.security", "starttls or tls with a user", mail.security)


def _is_address(text: str) -> bool:
    try:
        found = Address(addr_spec=text)
    except (HeaderParseError, ValueError, IndexError):
        return False
    return bool(found.username and found.domain)
