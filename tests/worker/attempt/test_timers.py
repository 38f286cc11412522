"""Timers of an attempt, in virtual time."""

import asyncio

from tests.support.virtual import run_virtual
from windlass.ports.loop_time import pass_time
from windlass.worker.attempt.timers import COARSE_MS, DEFAULT, Timers


class Watched:
    """Timers that note when they called, and with what."""

    def __init__(self, timeout_ms: int | None, idle_ms: int | None = None) -> None:
        self.late: list[tuple[float, str]] = []
        self.near: list[str] = []
        self.timers = Timers(timeout_ms, idle_ms, self._note, self.near.append)
        self.timers.start()

    def _note(self, message: str) -> None:
        self.late.append((asyncio.get_running_loop().time(), message))


def test_a_short_timeout_has_a_timer_of_its_own() -> None:
    async def main() -> None:
        watched = Watched(1_500)
        await pass_time(1.4)
        assert watched.late == []
        await pass_time(0.2)
        assert watched.late == [(1.5, "Timed out after 1.5 s")]

    run_virtual(main())


def test_a_long_timeout_passes_when_it_is_checked() -> None:
    async def main() -> None:
        watched = Watched(COARSE_MS + 1_000)
        await pass_time(60)
        assert watched.late == []
        watched.timers.check(COARSE_MS / 1000)
        assert watched.late == []
        watched.timers.check(COARSE_MS / 1000 + 1)
        assert [message for _, message in watched.late] == ["Timed out after 11 s"]

    run_virtual(main())


def test_most_of_a_long_timeout_is_warned_of_once() -> None:
    async def main() -> None:
        watched = Watched(30 * 60_000)
        for minutes in (23, 24, 25, 29):
            watched.timers.check(minutes * 60)
        warning = "it will be stopped in 6 min, when its timeout of 30 min has passed"
        assert (watched.near, watched.late) == ([warning], [])
        watched.timers.change_timeout(120 * 60_000)
        for minutes in (40, 95, 96, 97):
            watched.timers.check(minutes * 60)
        again = "it will be stopped in 24 min, when its timeout of 2 h has passed"
        assert watched.near == [warning, again]

    run_virtual(main())


def test_a_warning_is_no_sign_of_life() -> None:
    async def main() -> None:
        watched = Watched(60_000, idle_ms=55_000)
        await pass_time(50)
        watched.timers.check(50)
        assert len(watched.near) == 1
        await pass_time(5)
        assert [at for at, _ in watched.late] == [55.0]

    run_virtual(main())


def test_the_message_says_that_the_job_has_no_timeout_of_its_own() -> None:
    async def main() -> None:
        late: list[str] = []
        timers = Timers(1_500, None, late.append, why=DEFAULT)
        timers.start()
        await pass_time(2)
        assert late == [
            "Timed out after 1.5 s: the job has no timeout of its own (--timeout sets one)"
        ]
        measured = Timers(2_000, None, late.append, why=DEFAULT)
        measured.start()
        measured.change_timeout(4_000)
        await pass_time(4)
        assert late[1:] == [
            "Timed out after 4 s, by the length of its media (--timeout overrides it)"
        ]

    run_virtual(main())


def test_activity_puts_off_the_idle_timeout() -> None:
    async def main() -> None:
        watched = Watched(None, idle_ms=600)
        for _ in range(10):
            await pass_time(0.5)
            watched.timers.note_activity()
        assert watched.late == []
        await pass_time(2)
        assert watched.late == [(5.6, "No sign of life for 600 ms")]

    run_virtual(main())


def test_a_changed_timeout_counts_from_the_start() -> None:
    async def main() -> None:
        watched = Watched(2_000)
        await pass_time(1)
        watched.timers.change_timeout(5_000)
        assert watched.timers.timeout_ms == 5_000
        await pass_time(3.5)
        assert watched.late == []
        await pass_time(1)
        assert [at for at, _ in watched.late] == [5.0]

    run_virtual(main())


def test_no_timeout_stays_none() -> None:
    async def main() -> None:
        watched = Watched(None)
        watched.timers.change_timeout(1_000)
        await pass_time(10)
        watched.timers.check(1e9)
        assert watched.late == []

    run_virtual(main())


def test_the_first_limit_of_a_stop_counts_and_a_canceled_one_does_not() -> None:
    async def main() -> None:
        calls: list[str] = []
        timers = Timers(None, None, lambda message: None)
        timers.limit_stop(2, lambda: calls.append("first"))
        timers.limit_stop(1, lambda: calls.append("second"))
        await pass_time(3)
        assert calls == ["first"]
        other = Timers(1_000, 1_000, calls.append)
        other.start()
        other.limit_stop(1, lambda: calls.append("late"))
        other.cancel()
        await pass_time(3)
        assert calls == ["first"]

    run_virtual(main())
