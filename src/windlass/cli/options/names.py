"""The options that name a thing in a namespace."""

from typing import Annotated

from cyclopts import Parameter

Namespace = Annotated[str | None, Parameter(help="The namespace. Default: the token's own.")]
TemplateName = Annotated[str, Parameter(help="The template's name.")]
ScheduleName = Annotated[str, Parameter(help="The schedule's name.")]
