"""The options that name a thing in a namespace, and the calls about it."""

from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

from cyclopts import Parameter

from windlass.cli.options.connection import Connection

T = TypeVar("T")

TemplateName = Annotated[str, Parameter(help="The template's name.")]
ScheduleName = Annotated[str, Parameter(help="The schedule's name.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Place(Connection):
    """A server, and a namespace there."""

    namespace: Annotated[str | None, Parameter(help="The namespace. Default: the token's own.")] = (
        None
    )

    def call(
        self,
        method: str,
        path: str,
        answer: type[T],
        body: Any = None,
        *,
        timeout: float | None = None,
        **query: Any,
    ) -> T:
        """Makes one request about the namespace and returns the decoded answer."""
        query = {"namespace": self.namespace, **query}
        return super().call(method, path, answer, body, timeout=timeout, **query)


DEFAULT_PLACE: Final = Place()
