"""The options that select many jobs by filter."""

from dataclasses import dataclass
from typing import Any, Final

from cyclopts import Parameter

from windlass.cli.options.flags import Flag, Many, Yes
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import did_you_mean
from windlass.messages.jobs import Where

FILTERS: Final = ("queue", "task", "name", "workflow", "namespace", "submitted_by")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which jobs to change, if no id is given.

    Parameters
    ----------
    where
        queue=batch, task=shell, name=…, workflow=7, namespace=… or submitted_by=…
        Repeatable: all must match.
    state
        Only jobs in this state. Repeatable.
    label
        Only jobs with this label, name=value. Repeatable: all must match.
    dead
        Only dead letters: jobs that failed permanently.
    yes
        Do not ask for confirmation.
    """

    where: Many = None
    state: Many = None
    label: Many = None
    dead: Flag = False
    yes: Yes = False

    @property
    def is_given(self) -> bool:
        """Returns whether any filter was given."""
        return bool(self.where or self.state or self.label or self.dead)

    def filters(self) -> Where:
        """Returns the filter as the server expects it."""
        chosen: dict[str, Any] = {}
        for text in self.where or ():
            name, separator, value = text.partition("=")
            name = name.strip().replace("-", "_")
            if not separator or name not in FILTERS:
                hint = did_you_mean(name, FILTERS)
                expected = f"NAME=VALUE with one of {', '.join(FILTERS)}"
                raise InvalidInput("where", expected, text, hint)
            chosen[name] = _number(value) if name == "workflow" else value
        return Where(state=self.state or [], label=self.label or [], dead=self.dead, **chosen)


ANY: Final = Selection()


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise InvalidInput("where", "workflow=ID", text)
    return int(text)
