"""Settings of sign-in: the identity provider of people, and the issuers that machines bring.

They are tables in the file of core options: `[access.oidc]` and `[[access.machines]]`.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from windlass.domain.access.roles import Role, parse_role
from windlass.domain.values.addresses import is_loopback
from windlass.domain.values.conversion import convert
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import check_name

OPENID: Final = "openid"
ANY: Final = "*"  # at the end of a value: whatever follows


class GroupRights(Struct, frozen=True, forbid_unknown_fields=True):
    """What the members of a group may do; `namespaces` empty: in all."""

    group: str
    role: str
    namespaces: tuple[str, ...] = ()


class Oidc(Struct, frozen=True, forbid_unknown_fields=True):
    """The provider where people sign in, and what their groups may do. The first match counts."""

    issuer: str
    client_id: str
    client_secret_file: str = ""  # empty: a public client
    cli_client_id: str = ""  # of `windlass login`; empty: `client_id`
    public_url: str = ""  # where browsers reach the server; empty: only `windlass login`
    scopes: tuple[str, ...] = (OPENID, "profile", "email")
    name_claim: str = "sub"
    groups_claim: str = "groups"
    map: tuple[GroupRights, ...] = ()

    @property
    def audiences(self) -> tuple[str, ...]:
        """Returns the clients whose tokens count."""
        return (self.client_id, self.login_client)

    @property
    def login_client(self) -> str:
        """Returns the client of `windlass login`."""
        return self.cli_client_id or self.client_id

    @property
    def is_secure(self) -> bool:
        """Returns whether browsers reach the server over TLS."""
        return self.public_url.startswith("https:")

    @property
    def origin(self) -> str:
        """Returns what browsers send as `Origin`."""
        parts = urlsplit(self.public_url)
        return f"{parts.scheme}://{parts.netloc}".lower()

    @property
    def callback_url(self) -> str:
        """Returns where the provider sends browsers back to."""
        return self.public_url.rstrip("/") + "/auth/callback"


class Machine(Struct, frozen=True, forbid_unknown_fields=True):
    """What a machine may do whose token has this issuer, this audience and these claims."""

    issuer: str
    audience: str
    claims: dict[str, str | tuple[str, ...]]  # one of these; `*` at the end: whatever follows
    role: str
    namespaces: tuple[str, ...] = ()
    name_claim: str = "sub"


class SignIn(Struct, frozen=True, forbid_unknown_fields=True):
    """All settings of sign-in; with none of them, only our own tokens count."""

    oidc: Oidc | None = None
    machines: tuple[Machine, ...] = ()

    @property
    def is_on(self) -> bool:
        """Returns whether any token of another issuer counts."""
        return self.oidc is not None or bool(self.machines)


def read_sign_in(tables: Mapping[str, object]) -> SignIn:
    """Returns the settings from tables below `access`; raises `InvalidInput`."""
    settings = convert(dict(tables), SignIn, "access")
    if settings.oidc is not None:
        _check_oidc(settings.oidc)
    for number, machine in enumerate(settings.machines):
        _check_machine(machine, f"access.machines[{number}]")
    return settings


def _check_oidc(oidc: Oidc) -> None:
    _check_url("access.oidc.issuer", oidc.issuer)
    if oidc.public_url:
        _check_url("access.oidc.public_url", oidc.public_url)
        if urlsplit(oidc.public_url).path not in ("", "/"):
            raise InvalidInput("access.oidc.public_url", "without a path", oidc.public_url)
    for field in ("client_id", "name_claim", "groups_claim"):
        check_name(f"access.oidc.{field}", getattr(oidc, field))
    if OPENID not in oidc.scopes:
        raise InvalidInput("access.oidc.scopes", f"{OPENID} and others", ", ".join(oidc.scopes))
    for number, rights in enumerate(oidc.map):
        field = f"access.oidc.map[{number}]"
        check_name(f"{field}.group", rights.group)
        _check_rights(rights.role, rights.namespaces, field)


def _check_machine(machine: Machine, field: str) -> None:
    _check_url(f"{field}.issuer", machine.issuer)
    check_name(f"{field}.audience", machine.audience)
    check_name(f"{field}.name_claim", machine.name_claim)
    if not machine.claims:
        expected = "at least one: everybody can get a token from a public issuer"
        raise InvalidInput(f"{field}.claims", expected, "none")
    for name, wanted in machine.claims.items():
        for value in (wanted,) if isinstance(wanted, str) else wanted:
            if not value.removesuffix(ANY) or ANY in value.removesuffix(ANY):
                expected = f"a value, or the beginning of one and {ANY}"
                raise InvalidInput(f"{field}.claims.{name}", expected, value)
    _check_rights(machine.role, machine.namespaces, field)


def _check_rights(role: str, namespaces: Sequence[str], field: str) -> None:
    if parse_role(role) is Role.WORKER:
        raise InvalidInput(f"{field}.role", "one for people: workers enrol", role)
    for namespace in namespaces:
        check_name(f"{field}.namespaces", namespace)


def _check_url(field: str, url: str) -> None:
    """Raises `InvalidInput` unless it is https, or http on this machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    secure = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    if not host or not secure or parts.query or parts.fragment or parts.username is not None:
        raise InvalidInput(field, "an https address", url)
