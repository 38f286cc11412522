"""Move pages from the WAL into the database, so that the WAL stays short.

A WAL that is used again from its beginning commits in less than half the time of one
that grows, so pages are moved between two transactions once there are enough of them.
A reader that holds an old snapshot keeps the WAL from beginning again; then the next
try waits for as many pages more.
"""

import apsw

# 4 MiB: moved in about 5 ms. Four times as many take longer and save nothing.
PAGES = 1_000


class Checkpoints:
    """Counts the pages of the WAL and moves them when it is time."""

    def __init__(self, writer: apsw.Connection, mover: apsw.Connection) -> None:
        self._mover = mover
        self._pages = 0
        self._wanted_at = PAGES
        writer.set_wal_hook(self._note)

    def is_wanted(self) -> bool:
        """Returns whether the WAL has grown by enough since the last time."""
        return self._pages >= self._wanted_at

    def run(self) -> bool:
        """Moves what no reader needs; returns whether that was all. It never waits for anybody.

        It comes after a commit, which stands even if no page could be moved.
        """
        try:
            pages, moved = self._mover.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error:  # Another one moves them just now, or the disk is full.
            pages, moved = self._pages, 0
        complete = pages == moved
        self._wanted_at = PAGES if complete else max(pages, 0) + PAGES
        if complete:
            self._pages = 0
        return complete

    def _note(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK
