"""Refusals that depend on who asks."""

from windlass.domain.values.errors import WindlassError


class Forbidden(WindlassError):
    """The caller may not do this."""

    code = "forbidden"


class Unauthorized(WindlassError):
    """The request has no valid token."""

    code = "unauthorized"
