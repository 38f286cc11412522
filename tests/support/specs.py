"""Jobs of tests that count in milliseconds, as the engine's clock does."""

from typing import Any, Final

from windlass.domain.job.forms import RateLimit
from windlass.domain.job.job import JobSpec
from windlass.domain.matching.shapes import Rate
from windlass.domain.values.quantities import format_moment

_TIMES: Final = ("not_before", "start_before", "finish_before")


def spec_of(**fields: Any) -> JobSpec:
    """A job whose durations (`timeout_ms=…`), times and rates are given in milliseconds."""
    given: dict[str, Any] = {}
    for name, value in fields.items():
        if name.endswith("_ms"):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            given[name.removesuffix("_ms")] = value / 1000 if number else value
        elif name in _TIMES and isinstance(value, int):
            given[name] = format_moment(value)
        elif isinstance(value, Rate):
            given[name] = RateLimit(value.key, value.per_ms / 1000, value.max)
        else:
            given[name] = value
    return JobSpec(**given)
