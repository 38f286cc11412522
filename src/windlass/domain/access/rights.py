"""Roles, actions, and who may do what: `may(identity, action, resource)`.

The rights are one table. Each route declares its action and checks it before it runs, and again for
each object that it touches; streams keep checking while they are open. `docs/reference/rights.md`
prints the table, and a test calls every route as every kind of caller.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from windlass.domain.values.errors import InvalidInput


class Role(StrEnum):
    """A role includes the rights of the roles above it; `WORKER` is separate."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    OPERATOR = "operator"
    ADMIN = "admin"
    WORKER = "worker"

    __hash__ = str.__hash__  # faster than the hash of an enumeration: every request looks one up


PERSON: Final = "oidc:"  # prefix for the names of people who signed in
MACHINE: Final = "jwt:"  # prefix for the names of machines whose token comes from their own issuer
SIGNED_IN: Final = (PERSON, MACHINE)

# A role includes those with lower numbers. Workers have rights of their own and no others.
RANKS: Final = {
    Role.WORKER: 0,
    Role.VIEWER: 1,
    Role.SUBMITTER: 2,
    Role.OPERATOR: 3,
    Role.ADMIN: 4,
}


class Identity(NamedTuple):
    """The caller that a token identifies.

    A worker's token belongs to one `incarnation`; 0 marks the secret it enrols with.
    """

    token: int
    name: str
    role: Role
    namespaces: tuple[str, ...] = ()  # empty: all
    worker: int = 0
    incarnation: int = 0
    shut_out: str = ""  # the worker's status if it makes the token invalid, else empty

    @property
    def own_namespace(self) -> str:
        """Returns the namespace for jobs that do not name one."""
        if not self.namespaces or "default" in self.namespaces:
            return "default"
        return self.namespaces[0]


def parse_role(text: str) -> Role:
    """Returns the role with this name."""
    try:
        return Role(text)
    except ValueError:
        raise InvalidInput("role", f"one of {', '.join(Role)}", text) from None


class Action(StrEnum):
    """What a caller asks for. A new route uses one of these, or adds one here and below."""

    CHECK_HEALTH = "check-health"
    ENROL = "enrol"
    SIGN_IN = "sign-in"

    KNOW_ITSELF = "know-itself"

    DESCRIBE_API = "describe-api"
    READ_JOBS = "read-jobs"
    READ_FILES = "read-files"
    READ_EVENTS = "read-events"
    READ_NAMES = "read-names"
    READ_PLANS = "read-plans"
    READ_FLEET = "read-fleet"
    READ_METRICS = "read-metrics"
    READ_PLUGINS = "read-plugins"

    SUBMIT_JOBS = "submit-jobs"
    CHANGE_JOBS = "change-jobs"
    CHANGE_ALL_JOBS = "change-all-jobs"
    RAISE_PRIORITIES = "raise-priorities"
    UNBLOCK_JOBS = "unblock-jobs"
    DELETE_JOBS = "delete-jobs"
    SEND_SIGNALS = "send-signals"
    ANSWER_QUESTIONS = "answer-questions"
    SET_NAMES = "set-names"
    CHANGE_PLANS = "change-plans"

    MANAGE_WORKERS = "manage-workers"
    MANAGE_QUEUES = "manage-queues"
    MANAGE_POOLS = "manage-pools"
    MANAGE_TOKENS = "manage-tokens"
    READ_AUDIT = "read-audit"
    VERIFY = "verify"

    SYNC = "sync"
    LEAVE = "leave"
    WRITE_ATTEMPTS = "write-attempts"
    READ_INPUTS = "read-inputs"
    SUBMIT_CHILDREN = "submit-children"
    RUN_STEPS = "run-steps"

    __hash__ = str.__hash__  # faster than the hash of an enumeration: every request looks one up


class Right(NamedTuple):
    """Who may perform an action. Roles of people include those below them; `None` means nobody.

    `limited` is the lowest role for a token limited to namespaces, inside those; `unlimited` is the
    lowest role for a token without such a limit. Actions of workers have `WORKER` and concern the
    worker itself.
    """

    limited: Role | None
    unlimited: Role | None
    meaning: str
    is_open: bool = False  # no token is needed
    pending: bool = False  # a worker that waits for approval may do it too
    others: Action | None = None  # what the caller must be allowed to do with other people's jobs

    @property
    def is_fleet_wide(self) -> bool:
        """Returns whether it concerns all namespaces, so that limited tokens are refused."""
        return self.limited is None and not self.is_open


def _open(meaning: str) -> Right:
    return Right(None, None, meaning, is_open=True)


def _within(role: Role, meaning: str, others: Action | None = None) -> Right:
    return Right(role, role, meaning, others=others)


def _fleet(role: Role, meaning: str) -> Right:
    return Right(None, role, meaning)


def _worker(meaning: str, pending: bool = False) -> Right:
    return Right(Role.WORKER, Role.WORKER, meaning, pending=pending)


RIGHTS: Final[dict[Action, Right]] = {
    Action.CHECK_HEALTH: _open("ask whether the server is alive and ready"),
    Action.ENROL: _open("ask to enrol a worker, which needs a code, a token or an approval"),
    Action.SIGN_IN: _open("ask where to sign in, and sign in at the identity provider"),
    Action.KNOW_ITSELF: _within(Role.VIEWER, "show its own identity, end its own session"),
    Action.DESCRIBE_API: _within(Role.VIEWER, "read the description of the API"),
    Action.READ_JOBS: _within(
        Role.VIEWER, "list, show, explain and wait for jobs and workflows; list namespaces"
    ),
    Action.READ_FILES: _within(Role.VIEWER, "read logs and artifacts"),
    Action.READ_EVENTS: _within(
        Role.VIEWER, "read the event log; events about tokens need manage-tokens"
    ),
    Action.READ_NAMES: _within(Role.VIEWER, "list the names of artifacts"),
    Action.READ_PLANS: _within(Role.VIEWER, "list and show templates and schedules"),
    Action.READ_FLEET: _within(
        Role.VIEWER, "list workers, queues, pools and costs of the namespaces it can see"
    ),
    Action.READ_METRICS: _fleet(Role.VIEWER, "read the metrics"),
    Action.READ_PLUGINS: _fleet(Role.VIEWER, "read what the server's plug-ins show"),
    Action.SUBMIT_JOBS: _within(
        Role.SUBMITTER, "submit jobs and workflows, start templates, upload files for jobs"
    ),
    Action.CHANGE_JOBS: _within(
        Role.SUBMITTER,
        "cancel, retry and lower jobs and workflows that it submitted",
        others=Action.CHANGE_ALL_JOBS,
    ),
    Action.CHANGE_ALL_JOBS: _within(
        Role.OPERATOR, "do the same with those of others, answer their questions"
    ),
    Action.RAISE_PRIORITIES: _within(Role.OPERATOR, "raise the priority of submitted jobs"),
    Action.UNBLOCK_JOBS: _within(Role.OPERATOR, "accept or reject jobs that wait for an operator"),
    Action.DELETE_JOBS: _within(Role.OPERATOR, "delete ended jobs with their logs and artifacts"),
    Action.SEND_SIGNALS: _within(Role.SUBMITTER, "send signals to the jobs of a namespace"),
    Action.ANSWER_QUESTIONS: _within(
        Role.SUBMITTER,
        "answer questions of jobs that it submitted",
        others=Action.CHANGE_ALL_JOBS,
    ),
    Action.SET_NAMES: _within(Role.SUBMITTER, "point a name to an artifact"),
    Action.CHANGE_PLANS: _within(
        Role.OPERATOR, "put, delete and pause templates and schedules, run a schedule now"
    ),
    Action.MANAGE_WORKERS: _fleet(
        Role.OPERATOR, "approve, drain, disable, describe and remove workers, make codes for them"
    ),
    Action.MANAGE_QUEUES: _fleet(Role.OPERATOR, "pause and limit queues, set weights"),
    Action.MANAGE_POOLS: _fleet(
        Role.ADMIN, "put and delete pools, whose options may name programs; read these options"
    ),
    Action.MANAGE_TOKENS: _within(Role.ADMIN, "list, create, rotate and revoke tokens"),
    Action.READ_AUDIT: _within(Role.ADMIN, "read the audit log, of its namespaces"),
    Action.VERIFY: _fleet(Role.ADMIN, "verify the store"),
    Action.SYNC: _worker("send heartbeats, take jobs and report their ends", pending=True),
    Action.LEAVE: _worker("report that it is stopping"),
    Action.WRITE_ATTEMPTS: _worker("write logs, progress and artifacts of jobs that it holds"),
    Action.READ_INPUTS: _worker(
        "read the declared inputs of its jobs: artifacts of the jobs they depend on, and "
        "files uploaded for them"
    ),
    Action.SUBMIT_CHILDREN: _worker("add jobs to the workflow of a job that it holds"),
    Action.RUN_STEPS: _worker("store steps, wait and send signals for jobs that it holds"),
}


PENDING: Final = "pending_approval"
NO_TOKEN: Final = "this needs a valid token: Authorization: Bearer …"


class Resource(NamedTuple):
    """What an action is about. With no field set: anything the caller has a right to.

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


def why_not(who: Identity | None, action: Action, resource: Resource = SOMETHING) -> str | None:
    """Returns the reason of a refusal, or None if the caller may."""
    right = RIGHTS[action]
    if right.is_open:
        return None
    if who is None:
        return NO_TOKEN
    if right.unlimited is Role.WORKER:
        return _refuse_worker(who, right.pending, resource)
    if not _includes(who.role, right.unlimited):
        return f"this needs the role {right.unlimited}, the token has {who.role}"
    if who.namespaces:
        if right.limited is None or resource.is_fleet:
            return "this concerns all namespaces, and the token is limited to some"
        if not _includes(who.role, right.limited):
            return f"this needs the role {right.limited}, the token has {who.role}"
        if resource.namespace is not None and resource.namespace not in who.namespaces:
            return f"this token does not see namespace {resource.namespace}"
    if right.others is not None and resource.owner not in (None, who.name):
        return why_not(who, right.others, resource._replace(owner=None))
    return None


def _includes(role: Role, needed: Role | None) -> bool:
    return needed is not None and RANKS[role] >= RANKS[needed]


def _refuse_worker(who: Identity, pending: bool, resource: Resource) -> str | None:
    if who.role is not Role.WORKER:
        return f"this needs the role {Role.WORKER}, the token has {who.role}"
    if who.shut_out and not (pending and who.shut_out == PENDING):
        return f"the worker of this token is {who.shut_out}: it may do nothing"
    if not who.incarnation:
        return "this is the secret a worker enrols with: use the token it gets when it enrols"
    if resource.worker and resource.worker != who.worker:
        return "a worker may call this only for itself, and only about its own attempts"
    if resource.incarnation > who.incarnation:
        return f"this token belongs to incarnation {who.incarnation} of its worker"
    return None
