"""What belongs to one process: clients, and the handles of what they submitted."""

from typing import Any, NoReturn, Self


class Kept:
    """Is copied as itself, also inside of dataclasses and models, and not pickled."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: Any) -> Self:
        return self

    def __reduce_ex__(self, _: Any) -> NoReturn:
        raise TypeError(f"cannot pickle {self!r}: {self.instead()}")

    def instead(self) -> str:
        """Returns what to pickle in its place."""
        return "keep its id, and make a handle of it there: client.job(id) or client.workflow(id)"
