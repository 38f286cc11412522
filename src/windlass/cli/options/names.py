"""The options that name a thing in a namespace, and the calls about it."""

from dataclasses import dataclass
from typing import Annotated, Any, Final

from cyclopts import Parameter

from windlass.cli.options.connection import Connection

TemplateName = Annotated[str, Parameter(help="The template's name.")]
ScheduleName = Annotated[str, Parameter(help="The schedule's name.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Place(Connection):
    """A server, and a namespace there."""

    namespace: Annotated[str | None, Parameter(help="The namespace. Default: the token's own.")] = (
        None
    )

    @property
    def scope(self) -> dict[str, Any]:
        """Returns the query of every call: the namespace."""
        return {"namespace": self.namespace}


DEFAULT_PLACE: Final = Place()
