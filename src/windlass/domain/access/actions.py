"""Everything that a caller can ask for, and who may: the rights as one table.

Each route declares its action. `may.py` decides by this table, `docs/reference/rights.md` prints
it, and a test calls every route as everybody.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from windlass.domain.access.roles import Role


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
    READ_FUZZING = "read-fuzzing"

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

    __hash__ = str.__hash__  # faster than that of an enumeration: every request looks one up


class Right(NamedTuple):
    """Who may do something. Roles of people include those below them; `None` means nobody.

    `limited` is the least role of a token that is limited to namespaces, and counts for what is
    in them; `unlimited` that of a token for all namespaces. Workers' actions have `WORKER` and
    concern the worker itself.
    """

    limited: Role | None
    unlimited: Role | None
    meaning: str
    is_open: bool = False  # no token is needed
    pending: bool = False  # a worker that waits for approval may do it too
    others: Action | None = None  # what the caller must be allowed to do to others' jobs

    @property
    def is_fleet_wide(self) -> bool:
        """Whether it concerns all namespaces, so that limited tokens may not do it."""
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
    Action.KNOW_ITSELF: _within(Role.VIEWER, "ask who it is to the server, end its own session"),
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
        Role.VIEWER, "list workers, queues, pools and costs, as far as namespaces show them"
    ),
    Action.READ_METRICS: _fleet(Role.VIEWER, "read the metrics"),
    Action.READ_FUZZING: _fleet(
        Role.VIEWER, "read the state, findings and coverage of commit fuzzing"
    ),
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
    Action.SET_NAMES: _within(Role.SUBMITTER, "let a name point to an artifact"),
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
    Action.LEAVE: _worker("say that it stops"),
    Action.WRITE_ATTEMPTS: _worker("write logs, progress and artifacts of jobs that it holds"),
    Action.READ_INPUTS: _worker(
        "read what jobs that it holds declare as inputs: artifacts of jobs that they wait for, and "
        "files uploaded for them"
    ),
    Action.SUBMIT_CHILDREN: _worker("submit what jobs that it holds add to their workflow"),
    Action.RUN_STEPS: _worker("store steps, wait and send signals for jobs that it holds"),
}
