"""Methods of roles that run one statement, declared in one line.

    lock = query("lock_pool", int).row(PoolRow)
    living = of_ids("leases_of_workers").rows(Lease)
    put_log = query("put_log").record(LogRow)

`query` has the name of the statement and the types of its parameters; then follows what comes back,
or what is written. `of_ids` is for a statement that takes a list of ids first; nothing is asked if
the list is empty. mypy knows the parameters and the result of each method, and its docstring names
them where the types do not say enough. A method that does more than that is written out.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar, TypeVarTuple, overload

from windlass.store.sql.session import Role

R = TypeVar("R", bound=tuple[Any, ...])
T = TypeVar("T")
K = TypeVar("K")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
Ts = TypeVarTuple("Ts")

Answer = Coroutine[Any, Any, T]


class Query(Generic[*Ts]):
    """A statement with its parameters; each method here makes a method of a role."""

    def __init__(self, name: str) -> None:
        self._name = name

    def rows(self, kind: type[R]) -> Callable[[Role, *Ts], Answer[list[R]]]:
        """Returns all rows as records."""
        name = self._name

        def rows(self: Role, /, *args: *Ts) -> Answer[list[R]]:
            return self._session.rows(kind, name, *args)

        return rows

    def row(self, kind: type[R]) -> Callable[[Role, *Ts], Answer[R | None]]:
        """Returns the first row as a record, None without one."""
        name = self._name

        def row(self: Role, /, *args: *Ts) -> Answer[R | None]:
            return self._session.row(kind, name, *args)

        return row

    def column(self) -> Callable[[Role, *Ts], Answer[list[int]]]:
        """Returns the numbers in the first column."""
        name = self._name

        async def column(self: Role, /, *args: *Ts) -> list[int]:
            return [row[0] for row in await self._session.fetch(name, *args)]

        return column

    def pairs(self, key: type[K], value: type[T]) -> Callable[[Role, *Ts], Answer[dict[K, T]]]:
        """Returns the second column by the first."""
        name = self._name
        del key, value  # mypy reads them

        async def pairs(self: Role, /, *args: *Ts) -> dict[K, T]:
            return dict(await self._session.fetch(name, *args))

        return pairs

    def number(self) -> Callable[[Role, *Ts], Answer[int]]:
        """Returns the number in the only row."""
        name = self._name

        async def number(self: Role, /, *args: *Ts) -> int:
            return int(await self._session.fetch_value(name, *args))

        return number

    def optional(self) -> Callable[[Role, *Ts], Answer[int | None]]:
        """Returns the number in the first row, None without one."""
        name = self._name

        def optional(self: Role, /, *args: *Ts) -> Answer[int | None]:
            return self._session.fetch_value(name, *args)

        return optional

    def found(self) -> Callable[[Role, *Ts], Answer[bool]]:
        """Returns whether the statement returned a row."""
        name = self._name

        async def found(self: Role, /, *args: *Ts) -> bool:
            return bool(await self._session.fetch(name, *args))

        return found

    def count(self) -> Callable[[Role, *Ts], Answer[int]]:
        """Returns how many rows were changed."""
        name = self._name

        def count(self: Role, /, *args: *Ts) -> Answer[int]:
            return self._session.execute(name, *args)

        return count

    def run(self) -> Callable[[Role, *Ts], Answer[None]]:
        """Runs it and returns nothing."""
        name = self._name

        async def run(self: Role, /, *args: *Ts) -> None:
            await self._session.execute(name, *args)

        return run

    def record(self, kind: type[R]) -> Callable[[Role, R], Answer[None]]:
        """Runs it with the fields of a record."""
        name = self._name
        del kind  # mypy reads it

        async def record(self: Role, row: R, /) -> None:
            await self._session.execute(name, *row)

        return record

    def insert(self, kind: type[R]) -> Callable[[Role, R], Answer[int]]:
        """Inserts a record with a fresh id, ignoring its first field, and returns the id.

        Returns 0 if the row exists.
        """
        name = self._name
        del kind  # mypy reads it

        def insert(self: Role, row: R, /) -> Answer[int]:
            return self._session.insert(name, row[1:])

        return insert

    def many(self, kinds: str, kind: type[R]) -> Callable[[Role, Sequence[R]], Answer[None]]:
        """Runs it for each record; `kinds` has a letter for each column (`Session.many`)."""
        name = self._name
        del kind  # mypy reads it

        def many(self: Role, rows: Sequence[R], /) -> Answer[None]:
            return self._session.many(name, kinds, rows)

        return many

    def lock(self) -> Callable[[Role, *Ts], Answer[None]]:
        """Locks out other transactions, where several run at a time."""
        name = self._name

        def lock(self: Role, /, *args: *Ts) -> Answer[None]:
            return self._session.lock(name, *args)

        return lock


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

    def rows(self, kind: type[R]) -> Callable[[Role, Sequence[int], *Ts], Answer[list[R]]]:
        """Returns all rows as records."""
        name = self._name

        async def rows(self: Role, ids: Sequence[int], /, *args: *Ts) -> list[R]:
            if not ids:
                return []
            session = self._session
            return await session.rows(kind, name, session.ids(ids), *args)

        return rows

    def by_id(self, kind: type[R]) -> Callable[[Role, Sequence[int], *Ts], Answer[dict[int, R]]]:
        """Returns one record for each id, which is its first field."""
        name = self._name

        async def by_id(self: Role, ids: Sequence[int], /, *args: *Ts) -> dict[int, R]:
            if not ids:
                return {}
            session = self._session
            return {row[0]: row for row in await session.rows(kind, name, session.ids(ids), *args)}

        return by_id

    def lists(
        self, kind: type[R]
    ) -> Callable[[Role, Sequence[int], *Ts], Answer[dict[int, list[R]]]]:
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

    def values(self, value: type[T]) -> Callable[[Role, Sequence[int], *Ts], Answer[dict[int, T]]]:
        """Returns the second column by the id in the first."""
        name = self._name
        del value  # mypy reads it

        async def values(self: Role, ids: Sequence[int], /, *args: *Ts) -> dict[int, T]:
            if not ids:
                return {}
            session = self._session
            return dict(await session.fetch(name, session.ids(ids), *args))

        return values

    def run(self) -> Callable[[Role, Sequence[int], *Ts], Answer[None]]:
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
