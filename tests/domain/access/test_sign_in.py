"""Settings of sign-in: what a file may say, and what it must not."""

from pathlib import Path
from typing import Any

import pytest

from windlass.cli.options.configuration import load_settings
from windlass.domain.access.rights import Role
from windlass.domain.access.sign_in import TokenRefused, person, read_sign_in
from windlass.domain.values.errors import InvalidInput

OIDC: dict[str, Any] = {"issuer": "https://login.example", "client_id": "w"}
MACHINE: dict[str, Any] = {
    "issuer": "https://ci.example", "audience": "w", "claims": {"repository": "org/repo"},
    "role": "submitter",
}  # fmt: skip

FILE = """
heartbeat_interval = "20s"
[access]
token_lifetime = "90d"
[access.oidc]
issuer = "https://login.example"
client_id = "windlass"
[[access.oidc.map]]
group = "farm-ops"
role = "operator"
namespaces = ["farm"]
[[access.machines]]
issuer = "https://token.actions.githubusercontent.com"
audience = "windlass"
claims = { repository = "org/repo", ref = ["refs/heads/main", "refs/tags/*"] }
role = "submitter"
"""


def test_the_tables_stand_in_the_file_of_core_options(tmp_path: Path) -> None:
    file = tmp_path / "windlass.toml"
    file.write_text(FILE)
    settings = load_settings({}, {}, file)
    assert settings.config.access.token_lifetime_ms == 90 * 86_400_000
    assert settings.config.heartbeat_interval_ms == 20_000
    oidc = settings.sign_in.oidc
    assert oidc is not None
    assert [(r.group, r.role, r.namespaces) for r in oidc.map] == [
        ("farm-ops", "operator", ("farm",))
    ]  # fmt: skip
    assert settings.sign_in.machines[0].claims["repository"] == "org/repo"
    file.write_text(FILE.replace('role = "operator"', 'role = "opreator"'))
    with pytest.raises(InvalidInput, match=r"windlass\.toml"):
        load_settings({}, {}, file)
    file.write_text("[access]\noicd = 1\n")
    with pytest.raises(InvalidInput, match="oicd"):
        load_settings({}, {}, file)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"oidc": {"issuer": "https://x.example"}}, "client_id"),
    ({"oidc": {**OIDC, "issuer": "http://login.example"}}, "https"),
    ({"oidc": {**OIDC, "issuer": "https://user@login.example"}}, "https"),
    ({"oidc": {**OIDC, "issuer": "https://login.example?x"}}, "https"),
    ({"oidc": {**OIDC, "public_url": "http://windlass.example"}}, "https"),
    ({"oidc": {**OIDC, "public_url": "https://windlass.example/path"}}, "without a path"),
    ({"oidc": {**OIDC, "scopes": ["email"]}}, "openid"),
    ({"oidc": {**OIDC, "secret": "x"}}, "secret"),
    ({"oidc": {**OIDC, "map": [{"group": "a", "role": "worker"}]}}, "workers enrol"),
    ({"oidc": {**OIDC, "map": [{"group": "", "role": "viewer"}]}}, "group"),
    ({"machines": [{**MACHINE, "claims": {}}]}, "everybody"),
    ({"machines": [{**MACHINE, "claims": {"repository": "*"}}]}, "claims.repository"),
    ({"machines": [{**MACHINE, "claims": {"repository": ""}}]}, "claims.repository"),
    ({"machines": [{**MACHINE, "claims": {"repository": "*/repo"}}]}, "claims.repository"),
    ({"machines": [{**MACHINE, "claims": {"ref": ["main", "*"]}}]}, "claims.ref"),
    ({"machines": [{**MACHINE, "audience": ""}]}, "audience"),
    ({"machines": [{**MACHINE, "role": "root"}]}, "role"),
]


@pytest.mark.parametrize(("tables", "message"), WRONG)
def test_settings_that_would_let_too_many_in_are_refused(
    tables: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_sign_in(tables)


def test_the_first_group_of_the_map_counts_and_rights_are_never_added_up() -> None:
    rules = [
        {"group": "ops", "role": "operator", "namespaces": ["a"]},
        {"group": "staff", "role": "viewer"},
    ]
    oidc = read_sign_in({"oidc": {**OIDC, "map": rules}}).oidc
    assert oidc is not None
    both = person({"sub": "x", "groups": ["staff", "ops"]}, oidc)
    assert (both.role, both.namespaces, both.name) == (Role.OPERATOR, ("a",), "oidc:x")
    assert person({"sub": "x", "groups": "staff"}, oidc).role is Role.VIEWER
    for groups in (None, [], ["ops2"], "opsx", {"ops": 1}, ["o", "p", "s"]):
        with pytest.raises(TokenRefused):
            person({"sub": "x", "groups": groups}, oidc)


def test_a_name_must_be_usable_and_an_address_verified() -> None:
    rules = [{"group": "staff", "role": "viewer"}]
    by_mail = read_sign_in({"oidc": {**OIDC, "name_claim": "email", "map": rules}}).oidc
    assert by_mail is not None
    claims: dict[str, Any] = {"sub": "x", "groups": ["staff"], "email": "a@b.example"}
    assert person(claims, by_mail).name == "oidc:a@b.example"
    wrong: list[dict[str, Any]] = [
        {"email_verified": False}, {"email": "a\nb"}, {"email": "a" * 300}, {"email": 7}
    ]  # fmt: skip
    for change in wrong:
        with pytest.raises(TokenRefused):
            person({**claims, **change}, by_mail)
