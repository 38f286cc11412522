"""Uids of jobs: no two jobs of a machine have the same."""

import os
import pwd
from pathlib import Path

import pytest

from windlass.domain.values.errors import InvalidInput
from windlass.worker.isolation.job_users import NoFreeUid, Uids, parse_range


def test_two_workers_never_give_out_the_same_uid(tmp_path: Path) -> None:
    one, other = Uids(range(70_000, 70_003), tmp_path), Uids(range(70_000, 70_003), tmp_path)
    taken = [one.take(), other.take(), one.take()]
    assert sorted(taken) == [70_000, 70_001, 70_002]
    with pytest.raises(NoFreeUid, match="all uids from 70000 to 70002 are in use"):
        other.take()
    one.give_back(taken[0])
    with pytest.raises(NoFreeUid):  # It stays that worker's.
        other.take()
    assert one.take() == taken[0]
    one.close()
    assert other.take() in (taken[0], taken[2])
    other.close()


def test_the_uid_of_an_account_is_never_given_out(tmp_path: Path) -> None:
    accounts = {entry.pw_uid for entry in pwd.getpwall()}
    uid = max(accounts - {2**32 - 2, 2**16 - 2}, default=0)
    with pytest.raises(NoFreeUid):
        Uids(range(uid, uid + 1), tmp_path).take()
    assert uid in accounts
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("text", ["", "x", "0-10", "5-4", "70000-4294967295", "-1"])
def test_a_range_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="expected uids to be FIRST-LAST"):
        parse_range(text)


def test_a_range_may_be_one_uid() -> None:
    assert list(parse_range("70000")) == [70_000]
