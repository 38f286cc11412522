"""Who may do what, by the table of rights."""

import pytest

from windlass.domain.access.rights import (
    FLEET,
    RANKS,
    RIGHTS,
    Action,
    Identity,
    Resource,
    Role,
    may,
    sees,
    why_not,
)

PEOPLE = (Role.VIEWER, Role.SUBMITTER, Role.OPERATOR, Role.ADMIN)
OF_WORKERS = [action for action, right in RIGHTS.items() if right.unlimited is Role.WORKER]
OF_PEOPLE = [a for a, right in RIGHTS.items() if a not in OF_WORKERS and not right.is_open]


def person(role: Role, *namespaces: str) -> Identity:
    return Identity(1, "me", role, namespaces)


def worker(incarnation: int = 3, shut_out: str = "") -> Identity:
    return Identity(1, "worker w", Role.WORKER, (), 5, incarnation, shut_out)


def test_every_action_has_a_right() -> None:
    assert set(RIGHTS) == set(Action)


@pytest.mark.parametrize("action", list(Action))
def test_without_a_token_only_open_actions_are_allowed(action: Action) -> None:
    assert may(None, action) is RIGHTS[action].is_open


@pytest.mark.parametrize("action", OF_PEOPLE)
def test_a_role_includes_those_below_it(action: Action) -> None:
    for namespaces in ((), ("a",)):
        allowed = [role for role in PEOPLE if may(person(role, *namespaces), action)]
        assert allowed == list(PEOPLE[len(PEOPLE) - len(allowed) :])
        assert not may(worker(), action)
    assert [may(person(role, "a"), action, FLEET) for role in PEOPLE] == [False] * 4


@pytest.mark.parametrize("action", OF_PEOPLE)
def test_a_limited_token_reaches_its_own_namespaces(action: Action) -> None:
    for role in PEOPLE:
        limited = person(role, "a", "b")
        for namespace in ("a", "b"):
            assert may(limited, action, Resource(namespace)) is may(limited, action)
        assert not may(limited, action, Resource("c"))
        assert may(person(role), action, Resource("c")) is may(person(role), action)
    assert sees(person(Role.VIEWER, "a"), "a")
    assert not sees(person(Role.VIEWER, "a"), "b")


def test_a_submitter_changes_its_own_jobs_and_an_operator_all() -> None:
    for role in PEOPLE:
        for owner, least in (("me", Role.SUBMITTER), ("you", Role.OPERATOR), ("", Role.OPERATOR)):
            allowed = may(person(role, "a"), Action.CHANGE_JOBS, Resource("a", owner=owner))
            assert allowed is (RANKS[role] >= RANKS[least]), (role, owner)


@pytest.mark.parametrize("action", OF_WORKERS)
def test_a_workers_token_is_that_of_one_incarnation_of_one_worker(action: Action) -> None:
    assert may(worker(), action, Resource(worker=5, incarnation=3))
    assert not may(worker(), action, Resource(worker=6, incarnation=3))
    assert not may(worker(), action, Resource(worker=5, incarnation=4))
    assert not may(worker(incarnation=0), action)
    for role in PEOPLE:
        assert not may(person(role), action)


@pytest.mark.parametrize("action", OF_WORKERS)
def test_the_token_of_a_worker_that_is_shut_out_is_worthless(action: Action) -> None:
    for status in ("disabled", "removed", "pending_approval"):
        allowed = may(worker(shut_out=status), action)
        assert allowed is (status == "pending_approval" and action is Action.SYNC)


def test_a_refusal_says_why() -> None:
    assert "valid token" in (why_not(None, Action.READ_JOBS) or "")
    low = why_not(person(Role.VIEWER), Action.SUBMIT_JOBS)
    assert low == "this needs the role submitter, the token has viewer"
    limited = why_not(person(Role.ADMIN, "a"), Action.MANAGE_POOLS)
    assert limited == "this concerns all namespaces, and the token is limited to some"
