"""Histories about one input and two bugs, and about commits that change no code."""

from tests.fuzzing.histories.bookkeeping import BUG, two
from tests.fuzzing.histories.planted import FINE, SHORT_MS, Expected, History, Step, program

BOTH = two('has("X")', 'has("Y")')
START = "__attribute__((constructor)) static void start(void) { *(volatile int *)8 = 1; }\n"
# It takes its time, so that the limit is there first.
GREEDY = program(
    '  for (int n = 0; has("X") && n < 100; n++) {\n    char *more = malloc(1 << 22);\n'
    '    if (!more) { fprintf(stderr, "out of memory\\n"); return 1; }\n'
    "    memset(more, 1, 1 << 22);\n    usleep(1000);\n  }"
)
SLOW = f"usleep({SHORT_MS * 2_000});"
# The compiler inlines both readers.
INLINED = """\
static volatile int row[4], line[4];
static int number(void) { return has("X") ? row[4 + has("XX")] : 0; }
static int word(void) { return has("Y") ? line[4 + has("YY")] : 0; }
__attribute__((noinline)) static int value(void) { return number() + word(); }
"""
CALLERS = program(
    '  if (has("X")) one();\n  if (has("Y")) other();',
    "static void parse(void) { *(volatile int *)8 = 1; }\n"
    "static void one(void) { parse(); }\nstatic void other(void) { parse(); }\n",
)
TIMED = f"input_timeout: {SHORT_MS}ms\nfindings: {{kinds: [assertion, crash, timeout]}}"


def loop(analyze: str | int, decide: str | int) -> str:
    """Returns a solver whose main loop has a bug in one or both of its steps."""
    one, other = (f'has("{word}")' if word else "0" for word in (analyze, decide))
    return program(
        "  solve();",
        f"static void analyze(void) {{ if ({one}) *(volatile int *)8 = 1; }}\n"
        f"static void decide(void) {{ if ({other}) *(volatile int *)8 = 1; }}\n"
        "static void step(void) { decide(); analyze(); }\n"
        "static void solve(void) { step(); }\n",
    )


def inlined(functions: str) -> str:
    return program("  return value() & 0;", functions)


def behind(overflow: bool, freed: bool) -> str:
    """Returns a program with an overflow, and a use after free behind it, in one function."""
    lines = ['  sum += row[3 + has("X")];'] * overflow
    lines += [
        "  char *copy = malloc(4);",
        "  free(copy);",
        '  sum += has("X") ? copy[0] : 0;',
    ] * freed
    body = "\n".join(lines)
    parse = f"static volatile int sum, row[4];\nstatic void parse(void) {{\n{body}\n}}\n"
    return program("  parse();", parse)


ASSERTS = program("  parse();", 'static void parse(void) { assert(!has("X") && !has("Y")); }\n')
MOVED = program('  if (has("Y")) check();', "static void check(void) { *(volatile int *)8 = 1; }\n")
FOREVER = "for (volatile int left = 1; left;) {}"
HANGS = program(
    '  if (has("X")) one();\n  if (has("Y")) two();',
    f"static void one(void) {{ {FOREVER} }}\nstatic void two(void) {{ {FOREVER} }}\n",
)

HISTORIES = (
    History(
        "two hangs are two findings, each with its own origin and fix",
        {"good": FINE, "one": HANGS.replace('has("Y")', "0"), "both": HANGS,
         "half": HANGS.replace('has("X")', "0"), "fix": FINE},
        (Step("both", ("X", "Y"), 2), Step("half", (), 1), Step("fix", (), 0)),
        (Expected("does not end in one", "closed", ("one",), "good", gone="half"),
         Expected("does not end in two", "closed", ("both",), "one", gone="fix")),
        settings=f"input_timeout: {SHORT_MS}ms\nfindings: {{kinds: [hang]}}", long=True,
    ),
    History(
        "a bug behind another one of the same function is a finding of its own",
        {"good": behind(False, False), "first": behind(True, False), "second": behind(True, True),
         "half": behind(False, True), "fix": behind(False, False)},
        (Step("second", ("X",), 1), Step("half", ("X", "XX"), 2), Step("fix", (), 0)),
        (Expected("overflow in parse", "closed", ("first",), "good", gone="fix"),
         Expected("use-after-free in parse", "closed", ("half",), "good", gone="fix", exact=False,
                  suspects=("first", "second", "half"))),
        compiler="cc -g -O0 -fsanitize=address",
    ),
    History(
        "a fix that leaves a part of a bug and moves it to another function closes nothing",
        {"good": FINE, "bug": ASSERTS, "half": MOVED, "fix": FINE},
        (Step("bug", ("X",), 1), Step("half", ("Y",), 2), Step("fix", (), 0)),
        (Expected("assertion", "closed", ("bug",), "good", gone="fix"),
         Expected("SIGSEGV in check", "closed", ("half",), "good", gone="fix", exact=False)),
    ),
    History(
        "a bug that another caller shows is the same one, though nobody had time to date it",
        {"good": FINE, "bug": CALLERS},
        (Step("bug", ("X",), 1, late=True), Step("bug", ("Y",), 1)),
        (Expected("SIGSEGV in parse < one", since=("bug",), good="good"),),
    ),
    History(
        "a bug that another caller shows is the same one, though there is no time left for it",
        {"good": FINE, "bug": CALLERS},
        (Step("bug", ("X",), 1), Step("bug", ("Y",), 1, late=True)),
        (Expected("SIGSEGV in parse < one", since=("bug",), good="good"),),
    ),
    History(
        "what may be a known bug waits until there is time to date that",
        {"good": FINE, "bug": CALLERS},
        (Step("bug", ("X",), 1, late=True), Step("bug", ("Y",), 1, late=True)),
        (Expected("SIGSEGV in parse < one", since=("bug",), good=None, exact=False),),
    ),
    History(
        "a build that fails at its start is a finding of its own, closed by its own fix",
        {"good": FINE, "bug": BOTH, "start": START + BOTH, "ok": BOTH},
        (Step("bug", ("X", "Y"), 2), Step("start", ("a", "X"), 3), Step("ok", (), 2)),
        (Expected("!one()", since=("bug",), good="good"),
         Expected("!other()", since=("bug",), good="good"),
         Expected("SIGSEGV in start", "closed", ("start",), "bug", gone="ok")),
    ),
    History(
        "such a build is not taken for the only known bug",
        {"good": FINE, "bug": BUG, "start": START + BUG, "fix": START + FINE, "ok": FINE},
        (Step("bug", ("X",), 1), Step("start", ("a",), 2), Step("fix", (), 2), Step("ok", (), 0)),
        (Expected("parse", "closed", ("bug",), "good", gone="ok"),
         Expected("SIGSEGV in start", "closed", ("start",), "bug", gone="ok")),
    ),
    History(
        "such a build brings no closed finding back",
        {"good": FINE, "bug": BOTH, "fix": FINE, "start": START + FINE},
        (Step("bug", ("X", "Y"), 2), Step("fix", (), 0), Step("start", (), 1)),
        (Expected("!one()", "closed", ("bug",), "good", gone="fix"),
         Expected("!other()", "closed", ("bug",), "good", gone="fix"),
         Expected("SIGSEGV in start", since=("start",), good="fix")),
    ),
    History(
        "too much memory is not the crash that the same input shows later",
        {"good": FINE, "greedy": GREEDY, "bug": BUG, "fix": FINE},
        (Step("greedy", ("X",), 1), Step("bug", (), 2), Step("fix", (), 0)),
        (Expected("too much memory", "closed", ("greedy",), "good", gone="fix", kind="memory"),
         Expected("parse", "closed", ("bug",), "good", exact=False, gone="fix")),
        settings="findings: {kinds: [assertion, crash, memory]}",
    ),
    History(
        "a crash that becomes a slow input is not the name of all slow inputs",
        {"good": FINE, "bug": BUG, "slow": program(f'  if (has("X") || has("Y")) {SLOW}'),
         "half": program(f'  if (has("Y")) {SLOW}'), "fix": FINE},
        (Step("bug", ("X",), 1), Step("slow", ("Y",), 2), Step("half", (), 1), Step("fix", (), 0)),
        (Expected("parse", "closed", ("bug",), "good", gone="half"),
         Expected("too much time", "closed", ("slow",), "bug", gone="fix")),
        settings=TIMED, long=True,
    ),
    History(
        "a time limit that is fixed only for some inputs, or only just, stays open",
        {"good": FINE, "bug": program(f'  if (has("X") || has("Y")) {SLOW}'),
         "half": program(f'  if (has("Y")) {SLOW}'),
         "near": program(f'  if (has("Y")) usleep({SHORT_MS * 700});'), "fix": FINE},
        (Step("bug", ("X", "Y"), 1), Step("half", (), 1), Step("near", (), 1), Step("fix", (), 0)),
        (Expected("too much time", "closed", ("bug",), "good", gone="fix", kind="timeout"),),
        settings=TIMED, long=True,
    ),
    History(
        "an older bug of the same main loop is not taken for this one",
        {"good": FINE, "first": loop("X", 0), "second": loop("X", "X")},
        (Step("second", ("X",), 1),),
        (Expected("decide < step < solve", since=("second",), good="good", exact=False),),
    ),
    History(
        "a closed bug of the same main loop does not come back as another one",
        {"good": FINE, "first": loop("X", 0), "fix": loop(0, 0), "second": loop(0, "X")},
        (Step("first", ("X",), 1), Step("fix", (), 0), Step("second", ("X",), 1)),
        (Expected("SIGSEGV in analyze < step < solve", "closed", ("first",), "good", gone="fix"),
         Expected("SIGSEGV in decide < step < solve", since=("second",), good="fix")),
    ),
    History(
        "two bugs that the compiler inlines into one function are two findings",
        {"good": FINE, "one": inlined(INLINED.replace('4 + has("YY', 'has("Y')),
         "two": inlined(INLINED)},
        (Step("two", ("X", "Y"), 2),),
        (Expected("in number < value", since=("one",), good="good"),
         Expected("in word < value", since=("two",), good="one")),
        compiler="cc -g -O2 -fsanitize=address",
    ),
    History(
        "a fix that is reverted and applied again",
        {"good": FINE, "bug": BUG, "fix": FINE, "revert": BUG, "again": FINE},
        (Step("bug", ("X",), 1), Step("fix", (), 0), Step("revert", (), 1), Step("again", (), 0)),
        (Expected("parse", "closed", ("bug", "revert"), "fix", gone="again"),),
    ),
    History(
        "a commit that changes only flags is a suspect too",
        {"good": FINE, "flags": BUG, "harmless": BUG},
        (Step("harmless", ("X",), 1),),
        (Expected("parse", since=("harmless",), good="good", exact=False),),
        unbuilt=("flags",), touched={"flags": "CMakeLists.txt"},
    ),
    History(
        "so is one whose file has a name that git quotes",
        {"good": FINE, "guilty": BUG, "harmless": BUG},
        (Step("harmless", ("X",), 1),),
        (Expected("parse", since=("harmless",), good="good", exact=False),),
        unbuilt=("guilty",), touched={"guilty": "src/größe.c"},
    ),
    History(
        "a commit that renames the binary is not blamed, and builds before it say nothing",
        {"good": FINE, "bug": BUG, "renamed": BUG, "later": BUG, "fix": FINE},
        (Step("later", ("X",), 1), Step("fix", (), 0)),
        (Expected("parse", "closed", ("renamed",), None, exact=False, gone="fix"),),
        misnamed=("good", "bug"),
    ),
    History(
        "documents and tests are not to blame",
        {"good": FINE, "docs": FINE, "tests": FINE, "guilty": BUG},
        (Step("guilty", ("X",), 1),),
        (Expected("parse", since=("guilty",), good="good"),),
        unbuilt=("docs", "tests"), touched={"docs": "README.md", "tests": "tests/new"},
    ),
    History(
        "a merge of two branches at once names the guilty commit of one of them",
        {"good": FINE, "a1": FINE, "b1": FINE, "b2": BUG, "main": FINE, "octopus": BUG},
        (Step("octopus", ("X",), 1),),
        (Expected("parse", since=("b2",), good="b1"),),
        lines={"a": ("good", ("a1",)), "b": ("good", ("b1", "b2"))},
        merges={"octopus": ("a1", "b2")},
    ),
)  # fmt: skip
