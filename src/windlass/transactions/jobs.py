"""A job that was submitted in a user's transaction."""


class TransactionJob:
    """A job of a transaction that has not committed yet, as far as we know.

    Its `id` is final: after the commit, `client.job(job.id)` is a handle on it. If the transaction
    is rolled back, no job has this id on PostgreSQL; on SQLite, a later one may get it.
    """

    __slots__ = ("_number",)

    def __init__(self, number: int) -> None:
        self._number = number

    @property
    def id(self) -> int:
        """Returns the job's number."""
        return self._number

    def __windlass_reference__(self) -> int:
        """Returns the reference to the job's result for another job's arguments."""
        return self._number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TransactionJob) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self._number)

    def __repr__(self) -> str:
        return f"<job {self._number} of a transaction>"
