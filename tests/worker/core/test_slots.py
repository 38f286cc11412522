"""What an agent holds and reports, without any process."""

from tests.support.virtual import run_virtual
from tests.worker.core.scripted import ScriptedStarter, assignment
from windlass.messages.sync import Finished, Held, Refusal, Released, Stop
from windlass.ports.loop_time import pass_time
from windlass.worker.core.slots import Slots


class Bench:
    """Slots with a scripted starter; `news` counts the calls."""

    def __init__(self, count: int = 2) -> None:
        self.news = 0
        self.starter = ScriptedStarter()
        self.slots = Slots(count, self.starter, self._hear)

    def _hear(self) -> None:
        self.news += 1


def test_a_running_job_is_started_once_however_often_it_is_sent() -> None:
    async def main() -> None:
        bench = Bench()
        for _ in range(3):
            bench.slots.take(assignment(1))
        (attempt,) = bench.starter.attempts
        assert (attempt.started, bench.slots.received, bench.slots.free) == (1, 1, 1)
        assert bench.slots.held() == (Held(1, 1),)

    run_virtual(main())


def test_an_assigned_job_starts_when_its_start_is_answered() -> None:
    async def main() -> None:
        bench = Bench()
        bench.slots.take(assignment(1, "assigned"))
        asked = bench.slots.ask_to_start()
        assert bench.starter.attempts == []
        bench.slots.settle(asked, {})
        bench.slots.settle(asked, {})
        (attempt,) = bench.starter.attempts
        assert attempt.started == 1

    run_virtual(main())


def test_a_start_that_was_lost_or_stopped_meanwhile_is_not_made() -> None:
    async def main() -> None:
        bench = Bench()
        bench.slots.take(assignment(1, "assigned"))
        bench.slots.take(assignment(2, "assigned"))
        asked = bench.slots.ask_to_start()
        bench.slots.lose(Refusal(1, 1, "gone"))
        bench.slots.stop(Stop(2, 1, "canceled"))
        bench.slots.settle(asked, {})
        assert bench.starter.attempts == []
        assert list(bench.slots.reports().values()) == [Released(2, 1)]

    run_virtual(main())


def test_a_report_stays_until_it_is_answered_and_a_newer_one_is_kept() -> None:
    async def main() -> None:
        bench = Bench()
        bench.slots.take(assignment(1))
        bench.starter.attempts[0].complete()
        assert bench.news == 1
        told = bench.slots.reports()
        assert told == {(1, 1): Finished(1, 1)}
        assert bench.slots.busy
        bench.slots.settle({}, {})
        assert bench.slots.reports() == told
        bench.slots.settle({}, told)
        assert not bench.slots.busy

    run_virtual(main())


def test_a_lost_attempt_is_killed_and_reports_nothing() -> None:
    async def main() -> None:
        bench = Bench()
        bench.slots.take(assignment(1))
        (attempt,) = bench.starter.attempts
        bench.slots.lose(Refusal(1, 1, "expired"))
        assert attempt.stops == [("lost", None)]
        attempt.end(None)
        assert not bench.slots.busy

    run_virtual(main())


def test_a_job_this_worker_cannot_run_is_declined_and_the_agent_becomes_careful() -> None:
    async def main() -> None:
        bench = Bench()
        bench.starter.declines = "not here"
        bench.slots.take(assignment(1, "assigned"))
        assert bench.slots.reports() == {(1, 1): Released(1, 1, "not here")}
        assert not bench.slots.careful
        bench.starter.instead = Released(2, 1)
        bench.slots.take(assignment(2))
        assert bench.slots.reports()[2, 1] == Released(2, 1)
        assert bench.slots.careful

    run_virtual(main())


def test_long_timeouts_are_checked_while_anything_runs() -> None:
    async def main() -> None:
        bench = Bench()
        bench.slots.take(assignment(1))
        (attempt,) = bench.starter.attempts
        await pass_time(1.1)
        assert attempt.checked == [0.5, 1.0]
        attempt.complete()
        await pass_time(5)
        assert len(attempt.checked) == 2

    run_virtual(main())
