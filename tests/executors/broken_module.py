"""A module that cannot be imported."""

import a_package_that_does_not_exist  # type: ignore[import-not-found]  # noqa: F401
