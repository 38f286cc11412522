"""Engines: how they classify inputs, and that each of them finds a bug."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.debian import missing_reason
from tests.support.running import run
from windlass.clock import RealChance, RealClock
from windlass.domain.values.errors import InvalidInput
from windlass_fuzz.engines.engine import (
    Campaign,
    Engine,
    EngineFailed,
    Statistics,
    Target,
    engine_names,
    make_engine,
)
from windlass_fuzz.engines.mutation import mutate

LIMIT_MS = 120_000  # runs end at the first bug
SHORT_MS = 3_000

needs_clang = pytest.mark.skipif(
    missing_reason("clang") is not None, reason=missing_reason("clang") or ""
)
needs_afl = pytest.mark.skipif(
    missing_reason("afl-fuzz") is not None, reason=missing_reason("afl-fuzz") or ""
)

LIBFUZZER_TARGET = """
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
static void explode(void) { abort(); }
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 1 && data[0] == 'B' && data[1] == 'U') explode();
  return 0;
}
"""
AFL_TARGET = """
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
  char text[64] = {0};
  FILE *file = fopen(words[1], "r");
  if (count < 2 || !file) return 2;
  if (fread(text, 1, 63, file) && text[0] == 'B') abort();
  return 0;
}
"""


class Bench:
    """A folder with a build, and campaigns on it."""

    def __init__(self, folder: Path, memory_mib: int = 512, timeout_ms: int = 5_000) -> None:
        self.folder = folder
        self.build = folder / "build"
        self.memory = memory_mib * 1024 * 1024
        self.timeout_ms = timeout_ms
        for name in ("build", "scratch", "corpus", "crashes", "seeds"):
            (folder / name).mkdir()

    def script(self, name: str, text: str) -> None:
        (self.build / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.build / name).chmod(0o755)

    def engine(self, name: str, **options: Any) -> Engine:
        target = Target(
            self.build, {"name": name, **options}, self.folder / "scratch", RealClock(),
            RealChance(), self.timeout_ms, self.memory, sources=self.folder,
        )  # fmt: skip
        return make_engine(name, target)

    def file(self, text: str) -> Path:
        path = self.folder / "input"
        path.write_text(text)
        return path

    def fuzz(
        self,
        engine: Engine,
        *seeds: str,
        until_bug: bool = True,
        cores: int = 2,
        on_progress: Callable[[Statistics], None] = lambda _: None,
    ) -> Statistics:
        for number, text in enumerate(seeds):
            (self.folder / "seeds" / str(number)).write_text(text)
        return run(
            engine.fuzz(
                Campaign(
                    sorted((self.folder / "seeds").iterdir()), self.folder / "corpus",
                    self.folder / "crashes", LIMIT_MS if until_bug else SHORT_MS, cores, until_bug,
                    on_progress,
                )
            )
        )  # fmt: skip

    @property
    def crashes(self) -> list[Path]:
        return sorted((self.folder / "crashes").iterdir())


def test_the_four_engines_are_installed() -> None:
    assert engine_names() == ["afl", "command", "libfuzzer", "typefuzz"]


def test_another_package_may_provide_an_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "package" / "theirs-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[windlass.plugins]\ntheirs = theirs:PLUGIN\n")
    (tmp_path / "package" / "theirs.py").write_text(
        "from windlass.plugins import Plugin\n"
        "PLUGIN = Plugin(api=1, name='theirs', about='An engine.',\n"
        "                extensions={'fuzz.engines': {'theirs': 'theirs:Theirs'}})\n"
        "class Theirs:\n"
        "    def __init__(self, target):\n"
        "        self.target = target\n"
        "    def command(self, path):\n"
        "        return [self.target.options['greeting'], str(path)]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "package"))
    assert "theirs" in engine_names()
    engine = Bench(tmp_path).engine("theirs", greeting="hello")
    assert engine.command(Path("x")) == ["hello", "x"]


@pytest.mark.parametrize(
    ("script", "kind", "title"),
    [
        ("exit 0", "fine", ""),
        ("exit 2", "unsupported", ""),
        ("exit 9", "unsupported", ""),
        ("echo wrong answer 17; exit 3", "bug", "exit code 3: wrong answer N"),
        ("kill -SEGV $$", "bug", "SIGSEGV"),
        ("exit 139", "bug", "SIGSEGV"),
        ("sleep 60", "timeout", ""),
        ("echo std::bad_alloc; kill -ABRT $$", "memory", ""),
    ],
)
def test_exit_codes_are_mapped(tmp_path: Path, script: str, kind: str, title: str) -> None:
    bench = Bench(tmp_path, timeout_ms=1_500)
    bench.script("solver", script)
    engine = bench.engine(
        "command", argv=["{binaries}/solver", "{input}"], bug=[3], unsupported=[2]
    )
    verdict = run(engine.classify(bench.file("x")))
    assert (verdict.kind, verdict.title) == (kind, title)


def test_a_generator_of_the_solvers_own_is_used(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.script("generate", 'echo "made from $(cat $1) with $2" > $3')
    bench.script("solver", "grep -q 'made from seed with [0-9]' $1 && kill -ABRT $$")
    engine = bench.engine(
        "command", argv=["{binaries}/solver", "{input}"],
        generate=["{sources}/build/generate", "{test}", "{seed}", "{output}"],
    )  # fmt: skip
    assert bench.fuzz(engine, "seed").bugs > 0
    assert bench.crashes


def test_a_generator_that_fails_ends_the_run_with_its_words(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.script("generate", "echo no idea; exit 1")
    bench.script("solver", "exit 0")
    engine = bench.engine("command", argv=["{binaries}/solver"], generate=["{binaries}/generate"])
    with pytest.raises(EngineFailed, match="no idea"):
        bench.fuzz(engine, "seed")


def test_options_that_do_not_fit_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="speed"):
        Bench(tmp_path).engine("command", argv=["x"], speed=3)


def test_the_same_draws_make_the_same_input() -> None:
    def draws() -> Any:
        state = 1

        def draw() -> float:
            nonlocal state
            state = state * 48271 % 2147483647
            return state / 2147483647

        return draw

    data = b"(assert (> x 17))"
    made = [mutate(data, [b"other (words)"], draw) for draw in (draws(), draws())]
    assert made[0] == made[1]
    one = draws()
    assert len({mutate(data, [b"other"], one) for _ in range(50)}) > 25
    assert all(mutate(b"ok", [], one) for _ in range(500)), "nothing becomes empty"


@needs_clang
def test_libfuzzer_finds_minimises_and_prunes(tmp_path: Path) -> None:
    bench = Bench(tmp_path, memory_mib=1024)
    source = tmp_path / "target.c"
    source.write_text(LIBFUZZER_TARGET)
    compile_with("clang", "-g", "-fsanitize=fuzzer,address", source, bench.build / "target")
    engine = bench.engine("libfuzzer", binary="target")
    statistics = bench.fuzz(engine, "hello")
    assert statistics.executions > 0
    verdict = run(engine.classify(bench.crashes[0]))
    assert (verdict.kind, "explode" in verdict.title) == ("bug", True)
    long = bench.file("BU" + "x" * 300)
    small = tmp_path / "small"
    assert run(engine.shrink(long, small, 2_000))
    assert small.stat().st_size < long.stat().st_size
    assert run(engine.classify(small)).title == verdict.title
    corpus = tmp_path / "corpus"
    for number in range(20):
        (corpus / f"same-{number}").write_text("nothing new" + "!" * number)
    kept = tmp_path / "kept"
    kept.mkdir()
    assert run(engine.prune(corpus, kept, 60_000))
    assert 0 < len(os.listdir(kept)) < 20


@needs_clang
def test_libfuzzer_says_where_an_input_hangs(tmp_path: Path) -> None:
    bench = Bench(tmp_path, timeout_ms=1_000, memory_mib=1024)
    source = tmp_path / "target.c"
    source.write_text(LIBFUZZER_TARGET.replace("abort()", "for (volatile int left = 1; left;) {}"))
    compile_with("clang", "-g", "-fsanitize=fuzzer,address", source, bench.build / "target")
    verdict = run(bench.engine("libfuzzer", binary="target").classify(bench.file("BU")))
    assert (verdict.kind, verdict.frames) == ("timeout", ("explode",))


@needs_clang
def test_a_target_that_libfuzzer_cannot_run_does_not_count(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.script("target", "echo not a fuzzer; exit 1")
    with pytest.raises(EngineFailed, match="not a fuzzer"):
        bench.fuzz(bench.engine("libfuzzer", binary="target"), "x")


@pytest.mark.parametrize(
    "does",
    [
        pytest.param("echo usage: target FILE", id="no driver"),
        pytest.param("echo 'error while loading shared libraries' >&2; exit 127", id="no library"),
        pytest.param("echo Running: $4 >&2", id="ends in the middle of the input"),
    ],
)
def test_a_target_that_does_not_run_an_input_to_its_end_proves_nothing(
    tmp_path: Path, does: str
) -> None:
    bench = Bench(tmp_path)
    bench.script("target", does)
    verdict = run(bench.engine("libfuzzer", binary="target").classify(bench.file("x")))
    assert verdict.kind == "unsupported"


def test_libfuzzer_tells_how_far_it_is_while_it_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    line = "cov: 1 ft: 1 corp: 1 exec/s: 9 oom/timeout/crash: 0/0/{} time: 1s"
    bench.script(
        "target",
        f"echo '#100: {line.format(0)}'; while [ ! -e {tmp_path}/heard ]; do sleep 0.05; done; "
        f"echo '#200: {line.format(3)}'",
    )
    counts: list[int] = []

    def on_output(count: Statistics) -> None:
        counts.append(count.executions)
        (tmp_path / "heard").touch()

    count = bench.fuzz(bench.engine("libfuzzer", binary="target"), "x", on_progress=on_output)
    assert (count.executions, count.bugs) == (200, 3)
    assert (counts[0], counts[-1]) == (100, 200)


def test_a_binary_that_the_build_did_not_bring_is_named(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.script("other", "exit 0")
    with pytest.raises(InvalidInput, match=r"no file target \(files: other\)"):
        bench.engine("libfuzzer", binary="target")


@needs_afl
def test_afl_finds_and_minimises(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    source = tmp_path / "target.c"
    source.write_text(AFL_TARGET)
    compile_with("afl-clang-fast", source, bench.build / "target")
    engine = bench.engine("afl", argv=["{binaries}/target", "@@"])
    counts: list[int] = []
    statistics = bench.fuzz(
        engine, "Ahoy", on_progress=lambda count: counts.append(count.executions)
    )
    assert counts[-1] == statistics.executions
    assert statistics.executions > 0
    verdict = run(engine.classify(bench.crashes[0]))
    assert (verdict.kind, verdict.title) == ("bug", "SIGABRT")
    small = tmp_path / "small"
    assert run(engine.shrink(bench.file("B" + "x" * 40), small, 60_000))
    assert small.stat().st_size <= 2


@needs_afl
def test_crashes_of_afl_are_there_while_it_still_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    source = tmp_path / "target.c"
    source.write_text(AFL_TARGET)
    compile_with("afl-clang-fast", source, bench.build / "target")
    engine = bench.engine("afl", argv=["{binaries}/target", "@@"])
    seed = tmp_path / "seeds" / "one"
    seed.write_text("C")
    campaign = Campaign([seed], tmp_path / "corpus", tmp_path / "crashes", LIMIT_MS, 1)

    async def kill_it() -> bool:
        fuzzing = asyncio.create_task(engine.fuzz(campaign))
        while not any(campaign.crashes.iterdir()) and not fuzzing.done():
            await RealClock().sleep_ms(50)
        early = not fuzzing.done()
        fuzzing.cancel()
        await asyncio.gather(fuzzing, return_exceptions=True)
        return early

    assert run(kill_it())
    (crash,) = {path.read_bytes()[:1] for path in campaign.crashes.iterdir()}
    assert crash == b"B"


def test_flags_of_afl_name_files_of_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    bench.script("afl-fuzz", f'echo "$@" > {tmp_path}/words')
    monkeypatch.setenv("PATH", f"{bench.build}:{os.environ['PATH']}")
    engine = bench.engine("afl", argv=["x", "@@"], flags=["-x", "{binaries}/words.dict"])
    with pytest.raises(EngineFailed):
        bench.fuzz(engine, "seed", cores=1)
    assert f"-x {bench.build}/words.dict" in (tmp_path / "words").read_text()


def test_typefuzz_tells_disagreement_crash_and_refusal(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.script("one", "case $(cat $1) in *refuse*) echo '(error \"no\")';; *) echo sat;; esac")
    bench.script(
        "two",
        "case $(cat $1) in *wrong*) echo unsat;; *crash*) kill -SEGV $$;; *unsure*) echo unknown;;"
        " *) echo sat;; esac",
    )
    engine = bench.engine("typefuzz", solvers=["{binaries}/one", "{binaries}/two"])
    titles = {
        text: run(engine.classify(bench.file(f"(set-logic QF_LIA) {text}")))[:2]
        for text in ("fine", "wrong", "crash", "unsure", "refuse")
    }
    assert titles == {
        "fine": ("fine", ""),
        "wrong": ("bug", "answers differ: one says sat, two says unsat (QF_LIA)"),
        "crash": ("bug", "two: SIGSEGV"),
        "unsure": ("fine", ""),
        "refuse": ("unsupported", ""),
    }


def test_typefuzz_finds_where_two_solvers_disagree(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.script("yes", "echo sat")
    bench.script("no", "echo unsat")
    engine = bench.engine("typefuzz", solvers=["{binaries}/yes", "{binaries}/no"], iterations=5)
    seed = "(set-logic QF_LIA)\n(declare-fun x () Int)\n(assert (> x (+ x 1)))\n(check-sat)\n"
    assert bench.fuzz(engine, seed, cores=1).bugs > 0
    assert run(engine.classify(bench.crashes[0])).kind == "bug"


def test_typefuzz_without_a_usable_seed_does_not_count(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.script("yes", "echo sat")
    engine = bench.engine("typefuzz", solvers=["{binaries}/yes", "{binaries}/yes"])
    with pytest.raises(EngineFailed):
        bench.fuzz(engine, "this is no formula", until_bug=False, cores=1)


def test_a_seed_that_typefuzz_cannot_read_spoils_no_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.script("yes", "echo sat")
    bench.script("no", "echo unsat")
    engine = bench.engine("typefuzz", solvers=["{binaries}/yes", "{binaries}/no"], iterations=5)
    bad = "(set-logic QF_BV)(declare-fun a () (_ BitVec 8))(assert (= a (bvmul a #x03)))"
    good = "(set-logic QF_LIA)\n(declare-fun x () Int)\n(assert (> x (+ x 1)))\n(check-sat)\n"
    statistics = bench.fuzz(engine, bad, good, cores=1)
    assert (statistics.bugs > 0, "cannot use" in statistics.note) == (True, True)


def test_one_solver_is_not_enough_to_compare(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="at least two"):
        Bench(tmp_path).engine("typefuzz", solvers=["z3"])


def test_cvc5_of_the_wheel_is_a_program(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    engine = bench.engine("typefuzz", solvers=["{z3}", "{cvc5}"])
    formula = "(set-logic QF_LIA)(declare-const x Int)(assert (> x 3))(check-sat)"
    verdict = run(engine.classify(bench.file(formula)))
    assert (verdict.kind, verdict.output.count("sat")) == ("fine", 2)
    assert run(engine.classify(bench.file("(assert nonsense)"))).kind == "unsupported"


def compile_with(compiler: str, *words: Any) -> None:
    *flags, output = words
    program = shutil.which(compiler)
    assert program is not None
    subprocess.run([program, *map(str, flags), "-o", str(output)], check=True, capture_output=True)


HANGS = """
#include <unistd.h>
static volatile int left = 1;
__attribute__((noinline)) static void count(void) { for (int n = 0; n < 9; n++) left = 1; }
__attribute__((noinline)) static void loop(void) { while (left) count(); }
__attribute__((noinline)) static void rest(void) { while (left) pause(); }
int main(int words, char **given) {
  if (given[1][1] == 'a') rest();
  loop();
}
"""


@pytest.mark.skipif(missing_reason("gdb") is not None, reason=missing_reason("gdb") or "")
@pytest.mark.parametrize(("option", "loop"), [("work", "loop"), ("wait", "rest")])
def test_a_debugger_says_where_a_program_hangs(tmp_path: Path, option: str, loop: str) -> None:
    bench = Bench(tmp_path, timeout_ms=1_000)
    (tmp_path / "hangs.c").write_text(HANGS)
    compile_with("cc", "-g", "-O0", tmp_path / "hangs.c", bench.build / "hangs")
    engine = bench.engine("command", argv=["{binaries}/hangs", option, "{input}"])
    assert loop in run(engine.stack(bench.file("x")))
