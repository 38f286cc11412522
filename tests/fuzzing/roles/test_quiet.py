"""When a run that finds nothing new has ended: only time that the engine's programs had counts."""

from windlass_fuzz.roles.combinations.quiet import Quiet


def test_a_run_ends_after_its_quiet_time() -> None:
    quiet = Quiet(10_000, cores=2)
    assert not quiet.note(True, 10_000, 5, busy=False), "it found something"
    assert quiet.note(False, 10_000, 5, busy=False), "programs that wait need no processor"


def test_a_starved_engine_has_not_been_quiet() -> None:
    quiet = Quiet(10_000, cores=1)
    assert not quiet.note(False, 10_000, 500, busy=True)
    assert (quiet.silent_ms, quiet.part_ms) == (1_000, 90_000), "the next part is long enough"
    assert quiet.note(False, 90_000, 4_500, busy=True)


def test_an_engine_that_gets_nothing_at_all_runs_in_parts_that_end() -> None:
    quiet = Quiet(10_000, cores=1)
    assert not quiet.note(False, 10_000, 0, busy=True)
    assert quiet.part_ms == 200_000


def test_an_engine_gets_its_time_on_all_its_cores() -> None:
    assert not Quiet(10_000, cores=4).note(False, 10_000, 10_000, busy=True)
    assert Quiet(10_000, cores=4).note(False, 10_000, 30_000, busy=True)
    assert Quiet(10_000, cores=1).note(False, 10_000, 30_000, busy=True)
