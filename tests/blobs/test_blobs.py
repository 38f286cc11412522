"""`Blobs`: what every place for objects does alike."""

import urllib.error
import urllib.request

import pytest

from tests.blobs.conftest import Place, chunks_of
from windlass.domain.values.errors import InvalidInput, NotFound

LARGE = bytes(range(256)) * 40_000  # 10 MB, more than one part of an upload


def test_what_was_put_can_be_read(place: Place) -> None:
    place.run(place.blobs.put("a/b/c-1_2.txt", b"hello"))
    assert place.run(place.blobs.get("a/b/c-1_2.txt")) == b"hello"
    assert place.read("a/b/c-1_2.txt") == b"hello"
    place.run(place.blobs.put("a/b/c-1_2.txt", b""))
    assert place.run(place.blobs.get("a/b/c-1_2.txt")) == b""
    assert place.read("a/b/c-1_2.txt") == b""


def test_what_is_not_there_is_told_apart_from_what_is_empty(place: Place) -> None:
    assert place.run(place.blobs.get("a/nothing")) is None
    with pytest.raises(NotFound):
        place.read("a/nothing")
    with pytest.raises(NotFound):
        place.read("a/nothing", 3, 3)


def test_a_range_is_read(place: Place) -> None:
    place.run(place.blobs.put("x", b"0123456789"))
    assert place.read("x", 3) == b"3456789"
    assert place.read("x", 3, 5) == b"34"
    assert place.read("x", 3, 3) == b""
    assert place.read("x", 8, 99) == b"89"


def test_a_stream_is_written_and_read_in_pieces(place: Place) -> None:
    parts = [LARGE[start : start + 700_000] for start in range(0, len(LARGE), 700_000)]
    assert place.run(place.blobs.put_stream("big", chunks_of(*parts))) == len(LARGE)
    assert place.read("big") == LARGE
    assert place.read("big", 5_000_000, 5_000_300) == LARGE[5_000_000:5_000_300]
    assert place.run(place.blobs.put_stream("empty", chunks_of())) == 0
    assert place.run(place.blobs.get("empty")) == b""


def test_a_stream_that_fails_leaves_nothing(place: Place) -> None:
    broken = chunks_of(LARGE, error=ValueError("cut off"))
    with pytest.raises(ValueError, match="cut off"):
        place.run(place.blobs.put_stream("a/big", broken))
    assert place.run(place.blobs.get("a/big")) is None
    assert place.list("") == []


def test_a_stream_that_fails_leaves_what_was_there(place: Place) -> None:
    place.run(place.blobs.put("a", b"old"))
    with pytest.raises(ValueError, match="cut off"):
        place.run(place.blobs.put_stream("a", chunks_of(b"new", error=ValueError("cut off"))))
    assert place.run(place.blobs.get("a")) == b"old"


def test_objects_are_listed_in_the_order_of_their_keys(place: Place) -> None:
    keys = ["b/1", "a/5/x", "a/10", "a/2-0", "a/2.b", "ab/1", "c"]
    for key in keys:
        place.run(place.blobs.put(key, key.encode()))
    assert [info.key for info in place.list("")] == sorted(keys)
    assert [info.key for info in place.list("a")] == ["a/10", "a/2-0", "a/2.b", "a/5/x"]
    assert [info.key for info in place.list("a/")] == ["a/10", "a/2-0", "a/2.b", "a/5/x"]
    assert [info.key for info in place.list("a", "a/2-0")] == ["a/2.b", "a/5/x"]
    assert [info.key for info in place.list("", "a/5/w")] == ["a/5/x", "ab/1", "b/1", "c"]
    assert [info.size for info in place.list("b")] == [3]
    assert place.list("nothing") == []
    assert place.list("a")[0].modified_ms > 1_600_000_000_000


def test_deleting_twice_is_harmless(place: Place) -> None:
    for key in ("a/b/1", "a/b/2", "a/c"):
        place.run(place.blobs.put(key, b"x"))
    place.run(place.blobs.delete(["a/b/1", "a/b/2", "a/nothing"]))
    place.run(place.blobs.delete(["a/b/1"]))
    place.run(place.blobs.delete([]))
    assert [info.key for info in place.list("")] == ["a/c"]
    place.run(place.blobs.put("a/b/1", b"again"))
    assert place.run(place.blobs.get("a/b/1")) == b"again"


@pytest.mark.parametrize(
    "key", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/./b", "a\\b", "a\0b", "ä", "a/", "."]
)
def test_no_key_leads_elsewhere(place: Place, key: str) -> None:
    with pytest.raises(InvalidInput):
        place.run(place.blobs.put(key, b"x"))
    with pytest.raises(InvalidInput):
        place.run(place.blobs.put_stream(key, chunks_of(b"x")))
    with pytest.raises(InvalidInput):
        place.run(place.blobs.get(key))
    with pytest.raises(InvalidInput):
        place.run(place.blobs.delete([key]))
    with pytest.raises(InvalidInput):
        place.run(place.blobs.presign("GET", key, 1_000))


def test_an_address_allows_one_access_where_there_are_addresses(place: Place) -> None:
    put = place.run(place.blobs.presign("PUT", "a/b", 60_000))
    get = place.run(place.blobs.presign("GET", "a/b", 60_000))
    if place.kind != "s3":
        assert (put, get) == (None, None)
        return
    assert put is not None
    assert get is not None
    with urllib.request.urlopen(urllib.request.Request(put, b"sent straight", method="PUT")) as r:
        assert r.status == 200
    assert place.run(place.blobs.get("a/b")) == b"sent straight"
    with urllib.request.urlopen(get) as reply:
        assert reply.read() == b"sent straight"
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(urllib.request.Request(get, b"other", method="PUT"))
    assert place.run(place.blobs.get("a/b")) == b"sent straight"
