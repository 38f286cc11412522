"""One rootless engine with one image for all tests of containers."""

from collections.abc import Iterator

import pytest

from tests.support.containers import EngineMissingError, RootlessPodman, start_podman


@pytest.fixture(scope="session")
def podman() -> Iterator[RootlessPodman]:
    """Rootless podman of an ordinary user, for the whole run."""
    try:
        engine = start_podman()
    except EngineMissingError as missing:
        pytest.skip(str(missing))
    yield engine
    engine.close()
