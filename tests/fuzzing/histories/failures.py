"""Histories about kinds of failures: silent ones, flaky ones, slow ones, sanitizers, stacks."""

from tests.fuzzing.histories.bookkeeping import BUG
from tests.fuzzing.histories.planted import FINE, SHORT_MS, Expected, History, Step, program

READ = "static int read_at(int *place) { return *place; }\n"
SEGV = (
    READ
    + """\
static int left(void) { return has("X") ? read_at((int *)8) : 0; }
static int right(void) { return has("Y") ? *(volatile int *)16 : 0; }
"""
)
BOTH_SEGV = program("  left();\n  right();", SEGV)
STACKS = (
    READ
    + """\
static int left(void) { return read_at((int *)8); }
static int right(void) { return read_at((int *)8); }
"""
)
TWO_STACKS = program('  if (has("X")) left();\n  if (has("Y")) right();', STACKS)
CALLERS = READ + "".join(
    f"static int by_{name}(void) {{ return read_at((int *)8); }}\n" for name in "abcd"
)
FOUR_STACKS = program("".join(f'  if (has("{name}")) by_{name}();\n' for name in "abcd"), CALLERS)
# Which error a bad address gives depends on the input.
ADDRESSES = program(
    '  if (has("X")) use(text[1]);',
    """\
static char global[4];
static int use(int kind) {
  char *freed = malloc(4), *heap = malloc(4);
  volatile int end = 4;
  free(freed);
  return kind == 'a' ? *freed : kind == 'b' ? global[end] : kind == 'c' ? *(char *)8 : heap[end];
}
""",
)
RECURSIVE = program(
    '  if (has("X")) even(1);\n  if (has("Y")) odd(1);',
    "static int even(int n);\n"
    "static int odd(int n) { volatile char hole[4096]; hole[0] = n; return even(n + 1) + *hole; }\n"
    "static int even(int n) { volatile char hole[4096]; hole[0] = n; return odd(n + 1) + *hole; }",
)
CHATTY = program(
    '  printf("c %s\\n", text); fflush(stdout);\n  if (has("X")) stop();',
    "static void stop(void) { abort(); }",
)
NUMBERED = program(
    '  if (has("X")) {\n    fprintf(stderr, "node %d is broken at %p\\n", text[1], (void *)text);\n'
    "    kill(getpid(), SIGABRT);\n  }"
)
# It fails in every third run of the inputs of this history.
FLAKY = program(
    '  if (has("X")) {\n    FILE *mark = fopen("../../flaky", "a+");\n    fputc(120, mark);\n'
    "    fseek(mark, 0, SEEK_END);\n    assert(ftell(mark) % 3);\n  }"
)
SLOW = program(f'  if (has("X")) usleep({SHORT_MS * 2_000});')
ENDLESS = program('  if (has("X")) for (;;) pause();')
WRONG = program('  if (has("X")) {\n    puts("error: model 17 is wrong");\n    return 4;\n  }')
UNDEFINED = program(
    '  if (has("X")) add(2147483647);',
    "static int add(int number) { return number + text[0]; }",
)
LOSE = "static void lose(void) { char *lost = malloc(100); lost[0] = text[0]; text[1] = lost[0]; }"
LEAK = program('  if (has("X")) lose();', LOSE)
PARSE = 'static void parse(void) { if (has("Y")) abort(); }\n'
CRASH = program("  parse();", PARSE)
LEAK_AND_CRASH = program('  parse();\n  if (has("X")) lose();', PARSE + LOSE)
QUICK = f"input_timeout: {SHORT_MS}ms\nfindings: {{kinds: [%s]}}"

HISTORIES = (
    History(
        "two silent crashes are two findings",
        {"good": FINE, "bug": BOTH_SEGV},
        (Step("bug", ("X", "Y"), 2),),
        (Expected("read_at < left", since=("bug",), good="good"),
         Expected("SIGSEGV in right", since=("bug",), good="good")),
    ),
    History(
        "one bug with two stacks that is older than all builds is two findings of one group",
        {"bug": TWO_STACKS, "later": TWO_STACKS, "fix": FINE},
        (Step("later", ("X", "Y")), Step("fix", (), 0)),
        (Expected("read_at", "closed", ("bug",), None, exact=False, gone="fix"),),
        duplicates=1,
    ),
    History(
        "one bug with four stacks is one finding if one commit brought them all",
        {"good": FINE, "bug": FOUR_STACKS,
         "rest": program('  if (has("d")) by_d();\n', CALLERS), "fix": FINE},
        (Step("bug", ("a", "b", "c", "d"), 1), Step("rest", (), 1), Step("fix", (), 0)),
        (Expected("read_at", "closed", ("bug",), "good", gone="fix"),),
    ),
    History(
        "what two commits bring to one function is two findings",
        {"good": FINE, "one": program('  if (has("a")) by_a();\n', CALLERS),
         "two": program('  if (has("a")) by_a();\n  if (has("b")) by_b();\n', CALLERS)},
        (Step("one", ("a",), 1), Step("two", ("b",), 2)),
        (Expected("read_at < by_a", since=("one",), good="good"),
         Expected("read_at < by_b", since=("two",), good="one")),
    ),
    History(
        "a bad address is one finding, whatever the sanitizer calls it",
        {"good": FINE, "bug": ADDRESSES, "fix": FINE},
        (Step("bug", ("Xa", "Xb", "Xc", "Xd"), 1), Step("fix", (), 0)),
        (Expected("in use", "closed", ("bug",), "good", gone="fix", kind="sanitizer"),),
        compiler="cc -g -O0 -fsanitize=address",
    ),
    History(
        "an endless recursion is one finding wherever it ends",
        {"good": FINE, "bug": RECURSIVE},
        (Step("bug", ("X", "Y"), 1),),
        (Expected("even < odd", since=("bug",), good="good"),),
    ),
    History(
        "progress that a program prints does not name a bug",
        {"good": FINE, "bug": CHATTY},
        (Step("bug", ("aX", "bX", "X", "qrsX", "Xtu"), 1),),
        (Expected("SIGABRT in stop", since=("bug",), good="good"),),
    ),
    History(
        "numbers and addresses in a message do not name a bug",
        {"good": FINE, "bug": NUMBERED},
        (Step("bug", ("Xa", "Xb", "Xc"), 1),),
        (Expected("", since=("bug",), good="good"),),
    ),
    History(
        "without a debugger, silent crashes are one finding with all its inputs",
        {"good": FINE, "bug": BOTH_SEGV, "half": program("  right();", SEGV), "fix": FINE},
        (Step("bug", ("X", "Y"), 1), Step("half", (), 1), Step("fix", (), 0)),
        (Expected("SIGSEGV", "closed", ("bug",), "good", gone="fix"),),
        settings="signature: {debugger: none}",
    ),
    History(
        "a crash that comes in some runs is flaky, and closed when it never comes",
        {"good": FINE, "bug": FLAKY, "fix": FINE},
        (Step("bug", ("X",), 1), Step("bug", (), 1), Step("fix", (), 0)),
        (Expected("assertion", "closed", ("bug",), "good", gone="fix"),),
    ),
    History(
        "a flaky crash is said to be flaky",
        {"good": FINE, "bug": FLAKY},
        (Step("bug", ("X",), 1),),
        (Expected("assertion", "flaky", ("bug",), "good"),),
        long=True,
    ),
    History(
        "a slow input is a finding where slow ones count",
        {"good": FINE, "bug": SLOW, "fix": FINE},
        (Step("bug", ("X",), 1), Step("fix", (), 0)),
        (Expected("too much time", "closed", ("bug",), "good", gone="fix", kind="timeout"),),
        settings=QUICK % "timeout", long=True,
    ),
    History(
        "an input that does not end is a hang",
        {"good": FINE, "bug": ENDLESS},
        (Step("bug", ("X",), 1),),
        (Expected("does not end", since=("bug",), good="good", kind="hang"),),
        settings=QUICK % "hang", long=True,
    ),
    History(
        "slow inputs are no findings unless the solver says so, and close none",
        {"good": FINE, "bug": BUG, "slow": SLOW},
        (Step("bug", ("X",), 1), Step("slow", ("X",), 1)),
        (Expected("parse", since=("bug",), good="good"),),
        settings=f"input_timeout: {SHORT_MS}ms",
    ),
    History(
        "a wrong answer that the program itself reports",
        {"good": FINE, "bug": WRONG, "fix": FINE},
        (Step("bug", ("X",), 1), Step("fix", (), 0)),
        (Expected("exit code 4: error: model N", "closed", ("bug",), "good", gone="fix",
                  kind="wrong_answer"),),
    ),
    History(
        "undefined behaviour that the program survives",
        {"good": FINE, "bug": UNDEFINED, "fix": FINE},
        (Step("bug", ("X",), 1), Step("fix", (), 0)),
        (Expected("signed integer overflow", "closed", ("bug",), "good", gone="fix",
                  kind="sanitizer"),),
        compiler="cc -g -O0 -fsanitize=undefined",
    ),
    History(
        "a leak",
        {"good": FINE, "bug": LEAK, "fix": FINE},
        (Step("bug", ("X",), 1), Step("fix", (), 0)),
        (Expected("leak in lose", "closed", ("bug",), "good", gone="fix", kind="leak"),),
        compiler="cc -g -O0 -fsanitize=leak",
    ),
    History(
        "an input that only leaks has run to its end: a leak hides no crash",
        {"good": FINE, "leak": LEAK, "bug": LEAK_AND_CRASH, "fix": LEAK},
        (Step("leak", ("X",), 1), Step("bug", ("XY", "XYZ"), 2), Step("fix", (), 1)),
        (Expected("leak in lose", since=("leak",), good="good", kind="leak"),
         Expected("parse", "closed", ("bug",), "leak", gone="fix")),
        compiler="cc -g -O0 -fsanitize=leak",
    ),
    History(
        "a leak that only the input of another bug shows is found",
        {"good": FINE, "bug": CRASH, "fix": LEAK},
        (Step("bug", ("XY",), 1), Step("fix", (), 1)),
        (Expected("parse", "closed", ("bug",), "good", gone="fix"),
         Expected("leak in lose", since=("fix",), good="good", exact=False, kind="leak")),
        compiler="cc -g -O0 -fsanitize=leak",
    ),
)  # fmt: skip
