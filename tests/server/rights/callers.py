"""Everybody who may call: no token, dead tokens, workers in every state, every role."""

from typing import Final, NamedTuple

from tests.support.running_server import FakeWorker, RunningServer
from windlass.domain.access.rights import Role

OWN: Final = "ours"  # the namespace in which everything is that the rows ask for
OTHER: Final = "theirs"
PEOPLE: Final = (Role.VIEWER, Role.SUBMITTER, Role.OPERATOR, Role.ADMIN)
SCOPES: Final = {"own": (OWN,), "other": (OTHER,), "all": ()}


class Caller(NamedTuple):
    """Somebody who calls. `role` is None if the server does not know the token, or there is none.

    `standing` is that of a worker: live, stranger (another live one), pending, disabled, or secret
    (what it enrols with).
    """

    title: str
    token: str | None = None
    role: Role | None = None
    namespaces: tuple[str, ...] = ()
    standing: str = ""
    worker: FakeWorker | None = None
    name: str = ""


async def everybody(server: RunningServer, holder: FakeWorker) -> list[Caller]:
    """Makes all callers; `holder` is the live worker, which holds the attempt of the rows."""
    return [
        Caller("anonymous"),
        *await _dead(server),
        *await _workers(server, holder),
        *[await _person(server, role, scope) for role in PEOPLE for scope in SCOPES],
    ]


async def _dead(server: RunningServer) -> list[Caller]:
    """Makes tokens that gave every right, and are worth nothing now."""
    access, now = server.services.access, await server.services.engine.now()
    expired = await access.create_token("expired", Role.ADMIN, expires_at=now - 1)
    revoked = await access.create_token("revoked", Role.ADMIN)
    assert await access.revoke(revoked.token.id)
    removed = await server.worker("removed")
    await server.services.engine.workers.remove(removed.id, force=True)
    replaced = await server.worker("replaced")
    old = replaced.token
    await replaced.enrol()
    return [
        Caller("expired", expired.secret),
        Caller("revoked", revoked.secret),
        Caller("removed worker", removed.token),
        Caller("replaced worker", old),
    ]


async def _workers(server: RunningServer, holder: FakeWorker) -> list[Caller]:
    pending, disabled = await server.pending("pending"), await server.worker("disabled")
    stranger = await server.worker("stranger")
    path = f"/api/v1/workers/{disabled.id}/disable"
    assert (await server.admin.post(path)).json() == {"applied": True}
    return [
        Caller(f"{standing} worker", token, Role.WORKER, (), standing, worker)
        for standing, token, worker in (
            ("pending", pending.token, pending),
            ("disabled", disabled.token, disabled),
            ("stranger", stranger.token, stranger),
            ("secret", holder.secret, holder),
            ("live", holder.token, holder),
        )
    ]


async def _person(server: RunningServer, role: Role, scope: str) -> Caller:
    name = f"{role} {scope}"
    made = await server.services.access.create_token(name, role, SCOPES[scope])
    return Caller(name, made.secret, role, SCOPES[scope], name=name)
