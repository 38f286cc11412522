"""One connection in one transaction, as the roles see it."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any, Final, Protocol, TypeVar

R = TypeVar("R", bound=tuple[Any, ...])

INTEGER: Final = "i"
OTHER: Final = "o"  # text or bytes


class Session(Protocol):
    """Runs statements by their names in the `.sql` files."""

    async def fetch(self, name: str, *args: object) -> list[Any]:
        """Returns the rows as the driver gives them."""
        ...

    async def fetch_value(self, name: str, *args: object) -> Any:
        """Returns the first column of the first row, None if there is no row."""
        ...

    async def rows(self, kind: type[R], name: str, *args: object) -> list[R]:
        """Returns the rows as records; the statement selects their fields in order."""
        ...

    async def row(self, kind: type[R], name: str, *args: object) -> R | None:
        """Returns the first row as a record."""
        ...

    async def execute(self, name: str, *args: object) -> int:
        """Returns how many rows were changed."""
        ...

    async def insert(self, name: str, values: Sequence[object]) -> int:
        """Adds a row under the next number of the sequence that the statement names.

        Returns 0, and uses no number, if the row exists.
        """
        ...

    async def many(self, name: str, kinds: str, rows: Sequence[Sequence[object]]) -> None:
        """Runs a statement for each of these rows; `kinds` has a letter for each column.

        PostgreSQL gets all of them at once, as arrays.
        """
        ...

    async def number_many(
        self, sequence: str, name: str, kinds: str, rows: Sequence[Sequence[object]]
    ) -> None:
        """Does the same for rows whose first column is an ascending number, drawn here."""
        ...

    async def fetch_many(
        self, name: str, kinds: str, rows: Sequence[Sequence[object]]
    ) -> list[Any]:
        """Does the same with a statement that returns rows."""
        ...

    async def numbers(self, name: str, count: int) -> Sequence[int]:
        """Returns `count` new numbers, ascending; `name` is the sequence, such as `job_numbers`."""
        ...

    async def lock(self, name: str, *args: object) -> None:
        """Locks out other transactions, where several run at a time."""
        ...

    def ids(self, values: Iterable[int]) -> Any:
        """Returns these numbers, ascending and each once, as a parameter."""
        ...

    def integers(self, values: Iterable[int]) -> Any:
        """Returns these numbers in this order as a parameter."""
        ...

    def texts(self, values: Iterable[str]) -> Any:
        """Returns these texts as a parameter."""
        ...

    def pack(self, values: Iterable[int] | Iterable[str]) -> Any:
        """Returns a list as the value of a column."""
        ...

    def unpack_integers(self, value: Any) -> tuple[int, ...]:
        """Returns the list in a column."""
        ...

    def unpack_edges(self, value: Any) -> tuple[int, ...]:
        """Returns the jobs in a chunk of `dependents`."""
        ...

    def unpack_texts(self, value: Any) -> tuple[str, ...]:
        """Returns the list in a column."""
        ...


class Role:
    """What the roles share: the session they work in."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session


@cache
def maker(kind: type[R]) -> Callable[[Iterable[Any]], R]:
    """Returns `kind._make` without its Python frame."""
    make: Callable[[Iterable[Any]], R] = partial(tuple.__new__, kind)
    return make
