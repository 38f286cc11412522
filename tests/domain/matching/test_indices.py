"""Indexed resources: how they are written, given out, and told to jobs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.matching.indices import (
    held_by,
    offered,
    parse_indices,
    pick,
    read_indices,
    variables,
    without_shared,
    write_indices,
)
from windlass.domain.matching.matching import amount_of, merge_metadata
from windlass.domain.matching.room import parse_offer
from windlass.domain.values.errors import InvalidInput, shorten


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[0,1,2,3]", ("0", "1", "2", "3")),
        ("[0-3]", ("0", "1", "2", "3")),
        ("[8000-8001, 9000]", ("8000", "8001", "9000")),
        ("['lic-a', \"lic-b\"]", ("lic-a", "lic-b")),
        ("[lic-a,lic-b]", ("lic-a", "lic-b")),
        ("['0-3']", ("0-3",)),
        ("[GPU-5f0c,GPU-77aa]", ("GPU-5f0c", "GPU-77aa")),
        ("[]", ()),
    ],
)
def test_indices_are_lists_ranges_or_names(text: str, names: tuple[str, ...]) -> None:
    assert parse_indices(text, "gpus") == names


@pytest.mark.parametrize(
    "text", ["[0,0]", "[0-2,1]", "[3-1]", "[0-9999]", "[a b]", "['a]", "[,]", "[-1]"]
)
def test_other_indices_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"resources\.gpus"):
        parse_indices(text, "gpus")


def test_bytes_have_no_indices() -> None:
    with pytest.raises(InvalidInput, match=r"resources\.memory"):
        parse_indices("[0,1]", "memory")


def test_an_offer_has_amounts_and_indices() -> None:
    offer = parse_offer("gpus=[0,1], memory=4GiB,licences=['a','b','c'],cpus=6", processors=2)
    assert offer is not None
    assert offer.metadata == {
        "system:gpus": 2, "indices:gpus": ["0", "1"], "system:memory": 4 * 2**30,
        "resource:licences": 3, "indices:licences": ["a", "b", "c"], "system:cpus": 6,
        "system:shares": True,
    }  # fmt: skip
    assert offer.slots == 6


def test_an_offer_of_processors_says_how_many_jobs_run() -> None:
    offer = parse_offer("cpus=[0-2]", processors=8, pinnable={0, 1, 2, 3})
    assert offer is not None
    assert (offer.slots, offer.metadata["system:cpus"]) == (3, 3)
    assert parse_offer("", processors=8) is None


@pytest.mark.parametrize(
    "text", ["cpus", "gpus=[0,1", "gpus=0]", "a b=1", "=[0]", "cpus=2 gpus=[0]", "x.y=[0],X_Y=[1]"]
)
def test_other_offers_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="resources"):
        parse_offer(text, processors=2)


@pytest.mark.parametrize("text", ["", "cpus=4", "cpus=[0-9]", "cpus=[a]"])
def test_only_processors_that_are_listed_and_usable_can_be_pinned(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_offer(text, processors=2, pinnable={0, 1})


def test_none_of_a_detected_resource_can_be_offered() -> None:
    detected = {"system:gpus": 2, "indices:gpus": ["0", "1"]}
    for text in ("gpus=[]", "gpus=0"):
        offer = parse_offer(text, processors=1)
        assert offer is not None
        told = merge_metadata({**detected, **offer.metadata}, {})
        assert amount_of(told, "gpus") == 0


def test_an_amount_is_never_more_than_the_indices() -> None:
    found = {"system:gpus": 4, "indices:gpus": ["0", "1", "2", "3"]}
    assert amount_of(merge_metadata(found, {"system:gpus": 8}), "gpus") == 4
    assert amount_of(merge_metadata(found, {"system:gpus": 2}), "gpus") == 2
    assert amount_of(merge_metadata(found, {"indices:gpus": ["3"]}), "gpus") == 1
    assert amount_of(merge_metadata({}, {"indices:racks": "r1"}), "racks") == 1


def test_an_operator_who_offers_more_gpus_than_there_are_shares_them() -> None:
    found = {"system:gpus": 2, "indices:gpus": ["0", "1"], "system:cpus": 4}
    assert offered(without_shared(found, {"system:gpus": 4})) == {}
    assert offered(without_shared(found, {"system:gpus": 1})) == {"gpus": ("0", "1")}


def test_a_job_sees_its_indices() -> None:
    assert variables({"gpus": ("2", "3"), "lic.pool-a": ("x",)}) == {
        "WINDLASS_RESOURCE_GPUS": "2,3",
        "WINDLASS_RESOURCE_LIC_POOL_A": "x",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "2,3",
        "ROCR_VISIBLE_DEVICES": "2,3",
    }


def test_on_amds_gpus_cuda_counts_what_rocr_leaves() -> None:
    """HIP reads both: it would look for the third GPU among one."""
    seen = variables({"gpus": ("2",)}, "amd")
    assert (seen["ROCR_VISIBLE_DEVICES"], seen["CUDA_VISIBLE_DEVICES"]) == ("2", "0")
    assert seen["WINDLASS_RESOURCE_GPUS"] == "2"


def test_the_first_free_indices_are_picked() -> None:
    has = {"gpus": ("0", "1", "2"), "ports": ("80", "81")}
    held = {"gpus": {"1"}}
    assert pick([("gpus", 2), ("cpus", 3)], has, held) == {"gpus": ("0", "2")}
    assert pick([("cpus", 3)], has, held) is None
    with pytest.raises(LookupError):
        pick([("gpus", 3)], has, held)


_names = st.lists(st.text("abc019-_", min_size=1, max_size=3), unique=True, max_size=4).map(tuple)


@given(st.dictionaries(st.sampled_from(["gpus", "ports"]), _names))
def test_a_lease_keeps_what_it_was_given(indices: dict[str, tuple[str, ...]]) -> None:
    text = write_indices(indices)
    assert read_indices(text) == indices
    assert held_by([text]) == {name: set(names) for name, names in indices.items()}


@pytest.mark.parametrize("value", [5, None, {"a": 1}, True, [], [None]], ids=shorten)
def test_odd_metadata_offers_at_most_what_it_names(value: object) -> None:
    assert offered({"indices:gpus": value}).get("gpus", ()) in ((), ("5",), ("True",))
