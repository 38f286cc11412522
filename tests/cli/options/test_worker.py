"""What a worker's options become."""

import os
from pathlib import Path

import pytest

from windlass.cli.options.worker import Offers
from windlass.domain.values.errors import InvalidInput


def test_processors_can_be_listed_and_jobs_pinned_to_them() -> None:
    usable = min(os.sched_getaffinity(0))
    offers = Offers(resources=f"cpus=[{usable}],gpus=[0,1]", pin_cpus=True)
    options = offers.options("w", Path("state"), None, {})
    assert (options.pins, options.slots) == (True, 1)
    assert options.metadata["indices:cpus"] == [str(usable)]
    assert options.metadata["indices:gpus"] == ["0", "1"]
    assert not Offers(resources="cpus=2").options("w", Path("state"), None, {}).pins


def test_jobs_cannot_be_pinned_to_processors_that_are_not_listed() -> None:
    for resources in (None, "cpus=2", "cpus=[100000]"):
        with pytest.raises(InvalidInput):
            Offers(resources=resources, pin_cpus=True).options("w", Path("state"), None, {})
