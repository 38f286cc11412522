"""The blocking client is what `make blocking-client` writes."""

import pytest

from tests.support.blocking_client import FOLDER, ONLY_ASYNC, PAGES, WORDS, class_of, written


@pytest.mark.parametrize("page", PAGES)
def test_a_module_is_current(page: str) -> None:
    current = (FOLDER / f"{page}.py").read_text() == written(page)
    assert current, f"{page}.py is not current: run `make blocking-client`"


def test_every_exception_names_something_that_there_is() -> None:
    twins = {twin.name: twin for twins in PAGES.values() for twin in twins}
    for name, method in ONLY_ASYNC:
        assert method in [getattr(one, "name", "") for one in class_of(twins[name]).body]


def test_no_module_speaks_of_async_code() -> None:
    for page in PAGES:
        source = written(page)
        assert [words for words in WORDS if words in source] == []
        assert "await" not in source
