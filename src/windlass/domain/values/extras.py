"""Packages that only some installations have: which extra of Windlass installs them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from windlass.domain.values.errors import WindlassError

# The extra that each package comes with, by the name it is imported under.
EXTRAS: Final = {
    "asyncpg": "postgres",
    "boto3": "ec2",
    "botocore": "ec2",
    "django": "django",
    "fastapi": "fastapi",
    "flask": "flask",
    "gcovr": "coverage",
    "imageio_ffmpeg": "demo",
    "joserfc": "oidc",
    "kubernetes": "kubernetes",
    "obstore": "s3",
    "opentelemetry": "otel",
    "starlette": "fastapi",
}


class MissingExtra(WindlassError, ImportError):
    """Something needs a package that is not installed; the message is the command for it."""

    code = "extra_missing"

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(
            f"this needs {module}, which is not installed: run pip install 'windlass[{extra}]'"
        )


def missing_extra(error: ImportError, extra: str | None = None) -> MissingExtra | None:
    """Returns the error to raise for a package of an extra; None if it is not one of those."""
    module = (error.name or "").partition(".")[0]
    known = EXTRAS.get(module)
    return None if known is None else MissingExtra(module, extra or known)


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Raises `MissingExtra` for an import inside that needs this extra."""
    try:
        yield
    except ImportError as error:
        found = missing_extra(error, extra)
        if found is None:
            raise
        raise found from None
