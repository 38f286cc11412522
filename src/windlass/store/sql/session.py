"""One connection in one transaction, as the roles see it, and their methods of one statement.

Such a method is declared in one line:

    lock = query("lock_pool", int).row(PoolRow)
    living = of_ids("leases_of_workers").rows(Lease)
    put_log = query("put_log").record(LogRow)

`query` has the name of the statement and the types of its parameters; then follows what comes back,
or what is written. `of_ids` is for a statement that takes a list of ids first; nothing is asked if
the list is empty. mypy knows the parameters and the result of each method, and its docstring names
them where the types do not say enough. A method that does more than that is written out.
"""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import cache, partial
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, TypeVarTuple, overload

R = TypeVar("R", bound=tuple[Any, ...])

INTEGER: Final = "i"
OTHER: Final = "o"  # text or bytes


class Session(Protocol):
    """Runs statements by their names in the `.sql` files."""

    async def fetch(self, name: str, *args: object) -> list[Any]:
        """Returns the rows as the driver gives them."""

    async def fetch_value(self, name: str, *args: object) -> Any:
        """Returns the first column of the first row, None if there is no row."""

    async def rows(self, kind: type[R], name: str, *args: object) -> list[R]:
        """Returns the rows as records; the statement selects their fields in order."""

    async def row(self, kind: type[R], name: str, *args: object) -> R | None:
        """Returns the first row as a record."""

    async def execute(self, name: str, *args: object) -> int:
        """Returns how many rows were changed."""

    async def insert(self, name: str, values: Sequence[object]) -> int:
        """Adds a row under the next number of the sequence that the statement names.

        Returns 0, and uses no number, if the row exists.
        """

    async def many(self, name: str, kinds: str, rows: Sequence[Sequence[object]]) -> int:
        """Runs a statement for each of these rows; returns how many it wrote.

        `kinds` has a letter for each column.

        PostgreSQL gets all of them at once, as arrays.
        """

    async def number_many(
        self, sequence: str, name: str, kinds: str, rows: Sequence[Sequence[object]]
    ) -> None:
        """Does the same for rows whose first column is an ascending number, drawn here."""

    async def fetch_many(
        self, name: str, kinds: str, rows: Sequence[Sequence[object]]
    ) -> list[Any]:
        """Does the same with a statement that returns rows."""

    async def numbers(self, name: str, count: int) -> Sequence[int]:
        """Returns `count` new numbers, ascending; `name` is the sequence, such as `job_numbers`."""

    async def lock(self, name: str, *args: object) -> None:
        """Locks out other transactions, where several run at a time."""

    def ids(self, values: Iterable[int]) -> Any:
        """Returns these numbers, ascending and each once, as a parameter."""

    def integers(self, values: Iterable[int]) -> Any:
        """Returns these numbers in this order as a parameter."""

    def texts(self, values: Iterable[str]) -> Any:
        """Returns these texts as a parameter."""

    def pack(self, values: Iterable[int] | Iterable[str]) -> Any:
        """Returns a list as the value of a column."""

    def unpack_integers(self, value: Any) -> tuple[int, ...]:
        """Returns the list in a column."""

    def unpack_edges(self, value: Any) -> tuple[int, ...]:
        """Returns the jobs in a chunk of `dependents`."""

    def unpack_texts(self, value: Any) -> tuple[str, ...]:
        """Returns the list in a column."""


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


T = TypeVar("T")
K = TypeVar("K")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
Ts = TypeVarTuple("Ts")

Answer: TypeAlias = Coroutine[Any, Any, T]
Method: TypeAlias = Callable[[Role, *Ts], Answer[T]]
MethodOfIds: TypeAlias = Callable[[Role, Sequence[int], *Ts], Answer[T]]


class Query(Generic[*Ts]):
    """A statement with its parameters; each method here makes a method of a role."""

    def __init__(self, name: str) -> None:
        self._name = name

    def rows(self, kind: type[R]) -> Method[*Ts, list[R]]:
        """Returns all rows as records."""
        name = self._name
        return lambda self, *args: self._session.rows(kind, name, *args)

    def row(self, kind: type[R]) -> Method[*Ts, R | None]:
        """Returns the first row as a record, None without one."""
        name = self._name
        return lambda self, *args: self._session.row(kind, name, *args)

    def column(self) -> Method[*Ts, list[int]]:
        """Returns the numbers in the first column."""
        name = self._name
        return lambda self, *args: _column(self._session.fetch(name, *args))

    def pairs(self, _key: type[K], _value: type[T]) -> Method[*Ts, dict[K, T]]:
        """Returns the second column by the first."""
        name = self._name
        return lambda self, *args: _pairs(self._session.fetch(name, *args))

    def number(self) -> Method[*Ts, int]:
        """Returns the number in the only row."""
        name = self._name
        return lambda self, *args: _number(self._session.fetch_value(name, *args))

    def optional(self) -> Method[*Ts, int | None]:
        """Returns the number in the first row, None without one."""
        name = self._name
        return lambda self, *args: self._session.fetch_value(name, *args)

    def found(self) -> Method[*Ts, bool]:
        """Returns whether the statement returned a row."""
        name = self._name
        return lambda self, *args: _found(self._session.fetch(name, *args))

    def count(self) -> Method[*Ts, int]:
        """Returns how many rows were changed."""
        name = self._name
        return lambda self, *args: self._session.execute(name, *args)

    def run(self) -> Method[*Ts, None]:
        """Runs it and returns nothing."""
        name = self._name
        return lambda self, *args: _ran(self._session.execute(name, *args))

    def lock(self) -> Method[*Ts, None]:
        """Locks out other transactions, where several run at a time."""
        name = self._name
        return lambda self, *args: self._session.lock(name, *args)

    def record(self, _kind: type[R]) -> Callable[[Role, R], Answer[None]]:
        """Runs it with the fields of a record."""
        name = self._name
        return lambda self, row: _ran(self._session.execute(name, *row))

    def insert(self, _kind: type[R]) -> Callable[[Role, R], Answer[int]]:
        """Inserts a record with a fresh id, ignoring its first field, and returns the id.

        Returns 0 if the row exists.
        """
        name = self._name
        return lambda self, row: self._session.insert(name, row[1:])

    def many(self, kinds: str, _kind: type[R]) -> Callable[[Role, Sequence[R]], Answer[None]]:
        """Runs it for each record; `kinds` has a letter for each column (`Session.many`)."""
        name = self._name
        return lambda self, rows: _ran(self._session.many(name, kinds, rows))


async def _column(rows: Answer[list[Any]]) -> list[int]:
    return [row[0] for row in await rows]


async def _pairs(rows: Answer[list[Any]]) -> dict[Any, Any]:
    return dict(await rows)


async def _number(value: Answer[Any]) -> int:
    return int(await value)


async def _found(rows: Answer[list[Any]]) -> bool:
    return bool(await rows)


async def _ran(count: Answer[int]) -> None:
    await count


@overload
def query(name: str, /) -> Query[*tuple[()]]: ...
@overload
def query(name: str, a: type[A], /) -> Query[A]: ...
@overload
def query(name: str, a: type[A], b: type[B], /) -> Query[A, B]: ...
@overload
def query(name: str, a: type[A], b: type[B], c: type[C], /) -> Query[A, B, C]: ...
def query(name: str, /, *_: type) -> Query[*tuple[Any, ...]]:
    """Returns a statement that takes parameters of these types."""
    return Query(name)


class OfIds(Generic[*Ts]):
    """A statement whose first parameter is a list of ids; without ids nothing is asked."""

    def __init__(self, name: str) -> None:
        self._name = name

    def rows(self, kind: type[R]) -> MethodOfIds[*Ts, list[R]]:
        """Returns all rows as records."""
        name = self._name

        async def rows(self: Role, ids: Sequence[int], /, *args: *Ts) -> list[R]:
            if not ids:
                return []
            session = self._session
            return await session.rows(kind, name, session.ids(ids), *args)

        return rows

    def by_id(self, kind: type[R]) -> MethodOfIds[*Ts, dict[int, R]]:
        """Returns one record for each id, which is its first field."""
        name = self._name

        async def by_id(self: Role, ids: Sequence[int], /, *args: *Ts) -> dict[int, R]:
            if not ids:
                return {}
            session = self._session
            return {row[0]: row for row in await session.rows(kind, name, session.ids(ids), *args)}

        return by_id

    def lists(self, kind: type[R]) -> MethodOfIds[*Ts, dict[int, list[R]]]:
        """Returns the records of each id that has any; the id is their first field."""
        name = self._name

        async def lists(self: Role, ids: Sequence[int], /, *args: *Ts) -> dict[int, list[R]]:
            found: dict[int, list[R]] = {}
            if ids:
                session = self._session
                for row in await session.rows(kind, name, session.ids(ids), *args):
                    found.setdefault(row[0], []).append(row)
            return found

        return lists

    def values(self, _value: type[T]) -> MethodOfIds[*Ts, dict[int, T]]:
        """Returns the second column by the id in the first."""
        name = self._name

        async def values(self: Role, ids: Sequence[int], /, *args: *Ts) -> dict[int, T]:
            if not ids:
                return {}
            session = self._session
            return dict(await session.fetch(name, session.ids(ids), *args))

        return values

    def run(self) -> MethodOfIds[*Ts, None]:
        """Runs it and returns nothing."""
        name = self._name

        async def run(self: Role, ids: Sequence[int], /, *args: *Ts) -> None:
            if ids:
                session = self._session
                await session.execute(name, session.ids(ids), *args)

        return run


@overload
def of_ids(name: str, /) -> OfIds[*tuple[()]]: ...
@overload
def of_ids(name: str, a: type[A], /) -> OfIds[A]: ...
@overload
def of_ids(name: str, a: type[A], b: type[B], /) -> OfIds[A, B]: ...
def of_ids(name: str, /, *_: type) -> OfIds[*tuple[Any, ...]]:
    """Returns a statement that takes a list of ids and then parameters of these types."""
    return OfIds(name)
