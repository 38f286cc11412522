"""The one place that decides who may do what: `may(identity, action, resource)`.

Every route asks before it runs, and again about what it touches. Streams ask while they last.
"""

from typing import Final, NamedTuple

from windlass.domain.access.actions import RIGHTS, Action
from windlass.domain.access.roles import RANKS, Identity, Role

PENDING: Final = "pending_approval"
NO_TOKEN: Final = "this needs a valid token: Authorization: Bearer …"


class Resource(NamedTuple):
    """What an action is about. Without any field: whatever the caller has a right to.

    `owner` is who submitted a job or workflow. `worker` and `incarnation` are the process that
    holds an attempt. `is_fleet` means all namespaces.
    """

    namespace: str | None = None
    owner: str | None = None
    worker: int = 0
    incarnation: int = 0
    is_fleet: bool = False


SOMETHING: Final = Resource()
FLEET: Final = Resource(is_fleet=True)


def may(who: Identity | None, action: Action, resource: Resource = SOMETHING) -> bool:
    """Returns whether the caller may do this with the resource."""
    return why_not(who, action, resource) is None


def sees(who: Identity, namespace: str, action: Action = Action.READ_JOBS) -> bool:
    """Returns whether the caller may do this in the namespace."""
    return why_not(who, action, Resource(namespace)) is None


def why_not(
    who: Identity | None, action: Action, resource: Resource = SOMETHING
) -> str | None:  # fmt: skip
    """Returns the reason of a refusal, or None if the caller may."""
    right = RIGHTS[action]
    if right.is_open:
        return None
    if who is None:
        return NO_TOKEN
    if right.unlimited is Role.WORKER:
        return _refuse_worker(who, right.pending, resource)
    needed = right.limited if who.namespaces else right.unlimited
    if needed is None:
        least = right.unlimited
        if least is not None and RANKS[who.role] >= RANKS[least]:
            return "this concerns all namespaces, and the token is limited to some"
        needed = least
    if needed is None or RANKS[who.role] < RANKS[needed]:
        return f"this needs the role {needed}, the token has {who.role}"
    if who.namespaces:
        if resource.is_fleet:
            return "this concerns all namespaces, and the token is limited to some"
        if resource.namespace is not None and resource.namespace not in who.namespaces:
            return f"this token does not see namespace {resource.namespace}"
    if right.others is not None and resource.owner not in (None, who.name):
        return why_not(who, right.others, resource._replace(owner=None))
    return None


def _refuse_worker(who: Identity, pending: bool, resource: Resource) -> str | None:
    if who.role is not Role.WORKER:
        return f"this needs the role {Role.WORKER}, the token has {who.role}"
    if who.shut_out and not (pending and who.shut_out == PENDING):
        return f"the worker of this token is {who.shut_out}: it may do nothing"
    if not who.incarnation:
        return "this is the secret with which a worker enrols: use the token that it gets then"
    if resource.worker and resource.worker != who.worker:
        return "a worker may call this only for itself, and only about its own attempts"
    if resource.incarnation > who.incarnation:
        return f"this token is that of incarnation {who.incarnation} of its worker"
    return None
