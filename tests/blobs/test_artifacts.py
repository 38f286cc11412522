"""Artifacts: what is visible has the hash it declared."""

import hashlib

import pytest

from tests.blobs.conftest import Place, chunks_of
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.engine.files.artifacts import (
    adopt_upload,
    artifact_key,
    digest_of,
    put_artifact,
    upload_key,
)

DATA = b"the work of an hour" * 1_000
SHA256 = hashlib.sha256(DATA).hexdigest()


def test_a_file_is_kept_under_its_digest(place: Place) -> None:
    stored = place.run(put_artifact(place.blobs, chunks_of(DATA[:7], DATA[7:]), SHA256, len(DATA)))
    assert stored == len(DATA)
    assert place.run(place.blobs.get(artifact_key(SHA256))) == DATA
    assert [digest_of(info.key) for info in place.list("artifacts")] == [SHA256]


@pytest.mark.parametrize(
    ("data", "size", "field"),
    [
        (DATA[:-1], None, "sha256"),
        (DATA[:-1], len(DATA), "size"),
        (DATA + b"!", len(DATA), "size"),
        (DATA[:-1] + b"!", len(DATA), "sha256"),
        (b"", None, "sha256"),
    ],
)
def test_what_is_not_what_was_declared_is_not_kept(
    place: Place, data: bytes, size: int | None, field: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        place.run(put_artifact(place.blobs, chunks_of(data), SHA256, size))
    assert refusal.value.field == field
    assert place.list("") == []


def test_a_false_copy_leaves_the_true_one(place: Place) -> None:
    place.run(put_artifact(place.blobs, chunks_of(DATA), SHA256))
    with pytest.raises(InvalidInput):
        place.run(put_artifact(place.blobs, chunks_of(b"false"), SHA256))
    assert place.run(place.blobs.get(artifact_key(SHA256))) == DATA


@pytest.mark.parametrize("digest", ["", "../../x", SHA256.upper(), SHA256[:-1], SHA256 + "\n"])
def test_what_is_no_digest_is_refused(place: Place, digest: str) -> None:
    with pytest.raises(InvalidInput, match="SHA-256"):
        place.run(put_artifact(place.blobs, chunks_of(DATA), digest))


def test_an_upload_is_proved_before_it_is_kept(place: Place) -> None:
    good, bad = upload_key(1, 2, "good ../name"), upload_key(1, 2, "bad")
    place.run(place.blobs.put(good, DATA))
    place.run(place.blobs.put(bad, b"something else"))
    with pytest.raises(InvalidInput, match="sha256"):
        place.run(adopt_upload(place.blobs, bad, SHA256))
    assert place.list("artifacts") == []
    assert place.run(adopt_upload(place.blobs, good, SHA256, len(DATA))) == len(DATA)
    assert place.run(place.blobs.get(artifact_key(SHA256))) == DATA
    assert [info.key for info in place.list("uploads")] == [bad]
    with pytest.raises(NotFound):
        place.run(adopt_upload(place.blobs, good, SHA256))
