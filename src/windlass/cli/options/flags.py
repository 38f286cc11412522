"""Small option types that most commands use, and the error of options that exclude each other."""

from typing import Annotated

from cyclopts import Parameter

from windlass.domain.values.errors import NOT_KNOWN, InvalidInput


class Misused(InvalidInput):
    """A command line whose parts do not fit together; `sentence` says what to do."""

    def __init__(self, sentence: str) -> None:
        super().__init__("command line", sentence, NOT_KNOWN)

    @property
    def message(self) -> str:
        return self.expected


def _at_least_one(_: object, value: int) -> None:
    if value < 1:
        raise ValueError("Must be 1 or more.")


Flag = Annotated[bool, Parameter(show_default=False)]
Json = Annotated[bool, Parameter(name="--json", show_default=False, help="Print JSON.")]
Many = Annotated[list[str] | None, Parameter(consume_multiple=False)]
Follow = Annotated[bool, Parameter(name=["--follow", "-f"], show_default=False)]
Quiet = Annotated[bool, Parameter(name=["--quiet", "-q"], show_default=False)]
Yes = Annotated[bool, Parameter(name=["--yes", "-y"], show_default=False)]
Priority = Annotated[str | None, Parameter(allow_leading_hyphen=True)]
Limit = Annotated[int, Parameter(validator=_at_least_one)]

JobId = Annotated[int, Parameter(help="The job's id.")]
WorkflowId = Annotated[int, Parameter(help="The workflow's id.")]
