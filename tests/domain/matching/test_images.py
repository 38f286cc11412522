"""Names of images: those of registries and engines, and no others."""

import pytest

from windlass.domain.matching.isolation import check_image
from windlass.domain.values.errors import InvalidInput


@pytest.mark.parametrize(
    "name",
    [
        "alpine", "python:3.12-slim", "docker:24", "localhost/box:1", "localhost:5000/a/b:latest",
        "ghcr.io/org/some_name/x-y:v1.2", "Registry.Example.com/a",
        "docker.io/library/busybox@sha256:" + "a1" * 32, "box:1@sha256:" + "0" * 64,
    ],
)  # fmt: skip
def test_names_of_images_are_accepted(name: str) -> None:
    check_image(name, "image")


@pytest.mark.parametrize(
    "name",
    [
        "", "--privileged", "-v=/:/host", "dir:etc", "oci:image", "docker-archive:x",
        "containers-storage:x", "dir:/etc", "docker://alpine", "/etc", "../x", "a b", "box:1 --rm",
        "Box", "box:", "box@sha256:00", "box\n", "a" * 501, 5,
    ],
)  # fmt: skip
def test_options_and_files_of_the_worker_are_no_images(name: object) -> None:
    with pytest.raises(InvalidInput, match="name of an image"):
        check_image(name, "image")
