"""Small option types that most commands use."""

from typing import Annotated

from cyclopts import Parameter

Flag = Annotated[bool, Parameter(show_default=False)]
Json = Annotated[bool, Parameter(name="--json", show_default=False, help="Print JSON.")]
Many = Annotated[list[str] | None, Parameter(consume_multiple=False)]
Yes = Annotated[bool, Parameter(name=["--yes", "-y"], show_default=False)]
Priority = Annotated[str | None, Parameter(allow_leading_hyphen=True)]

JobId = Annotated[int, Parameter(help="The job's id.")]
WorkflowId = Annotated[int, Parameter(help="The workflow's id.")]
