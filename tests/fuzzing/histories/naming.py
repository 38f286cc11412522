"""Histories about names: what varies between inputs and runs must not name a bug."""

from tests.fuzzing.histories.planted import FINE, SHORT_MS, Expected, History, Step, program

# A parser: how deep its input is nested is on the stack.
NESTED = program(
    "  parse();",
    """\
static char *at;
static void value(void);
static void leaf(void) { if (*at == 'X') *(volatile int *)8 = 1; }
static void other(void) { *(volatile int *)8 = 1; }
static void array(void) { at++; value(); }
static void object(void) { at++; value(); }
static void value(void) {
  if (*at == '[') array();
  else if (*at == '{') object();
  else if (*at == 'Y') other();
  else leaf();
}
static void parse(void) { at = text; value(); }
""",
)
VALUES = program(
    '  if (has("X")) {\n    fprintf(stderr, "toy: /tmp/x%d/toy.c:%d: check: Assertion `index %d < '
    'size (%d) of %p in \\"%s\\"\' failed.\\n",\n'
    "      getpid(), text[1], text[1], text[2], (void *)text, text);\n    abort();\n  }"
)
QUOTED = program(
    '  if (has("X")) {\n    fprintf(stderr, "error: unexpected \'%s\' in node %x, clause", text,\n'
    "      text[1] * 123456789u);\n"
    '    for (int n = -1; n < text[1] % 5; n++) fprintf(stderr, " %d", n);\n'
    '    fprintf(stderr, "\\n");\n    return 4;\n  }'
)
REPEATED = program(
    '  if (has("X")) {\n    fprintf(stderr, "error: unknown symbol %s in this clause\\n", text);\n'
    "    return 4;\n  }"
)
REPEATED_ASSERTION = program(
    '  if (has("X")) {\n    fprintf(stderr, "toy: toy.c:5: check: Assertion "\n'
    '      "`the symbol %s is known\' failed.\\n", text);\n    abort();\n  }'
)
OVERFLOWS = """\
static int add(int number) { return number + text[0]; }
static int less(int number) { return number - text[0]; }
"""
TWO_OVERFLOWS = program(
    '  if (has("X")) add(2147483647);\n  if (has("Y")) add(2147483646);\n'
    '  if (has("Z")) less(-2147483647);\n',
    OVERFLOWS,
)
NOISY = program(
    '  add(2147483647);\n  if (has("X")) stop();\n  assert(!has("Y"));',
    OVERFLOWS + "static void stop(void) { *(volatile int *)8 = 1; }\n",
)
SIGNS = program(
    '  if (has("((")) {\n    fprintf(stderr, "fatal: cannot handle %s", text);\n    abort();\n  }'
)
SLOW_REPORT = program('  if (has("X")) for (;;) add(2147483647);', OVERFLOWS)
# A silent crash in every third run: without luck, the debugger does not see the first one.
THIRD = """\
static void third(void) {
  FILE *mark = fopen("../../flaky", "a+");
  fputc(120, mark);
  fseek(mark, 0, SEEK_END);
  if (ftell(mark) % %d == 0) *(volatile int *)8 = 1;
}
"""
SOMETIMES = program('  if (has("X")) third();', THIRD.replace("%d", "3"))
RARELY = program('  if (has("X")) third();', THIRD.replace("%d", "20"))
SAYS_MEMORY = program('  printf("c %s\\n", text);\n  fflush(stdout);\n  if (has("X")) abort();')
UNDEFINED = "cc -g -O0 -fsanitize=undefined"

HISTORIES = (
    History(
        "a bug that inputs reach at any depth is one finding, and a bug beside it another",
        {"good": FINE, "bug": NESTED},
        (Step("bug", ("X", "[X", "{X", "[[X", "{{[X", "[{[{[X", "[[[[[[X", "[[[[Y", "Y"), 2),),
        (Expected("leaf < value < parse", since=("bug",), good="good"),
         Expected("other < value < parse", since=("bug",), good="good")),
    ),
    History(
        "values, addresses, paths and input in an assertion do not name a bug",
        {"good": FINE, "bug": VALUES, "fix": FINE},
        (Step("bug", ("Xabc", "Xdef", "Xghi", "Xjkl"), 1), Step("fix", (), 0)),
        (Expected('index N < size (N) of * in "*"', "closed", ("bug",), "good", gone="fix"),),
    ),
    History(
        "what a message quotes of the input does not name a bug, nor do numbers of any kind",
        {"good": FINE, "bug": QUOTED, "fix": FINE},
        (Step("bug", ("Xabc", "Xdef", "Xghi\n", "Xjkl", "X9"), 1), Step("fix", (), 0)),
        (Expected("unexpected '*'", "closed", ("bug",), "good", gone="fix", kind="wrong_answer"),),
    ),
    History(
        "what a message repeats of the input without quotes does not name a bug either",
        {"good": FINE, "bug": REPEATED, "fix": FINE},
        (Step("bug", ("Xabc", "((((X", "(Xhi (jk))", "Xlm error", "symbol X q", "X", "X (("), 1),
         Step("fix", (), 0)),
        (Expected("error: unknown symbol * in this clause", "closed", ("bug",), "good",
                  gone="fix", kind="wrong_answer"),),
    ),
    History(
        "nor do signs of the input name a bug",
        {"good": FINE, "bug": SIGNS},
        (Step("bug", ("((", "(((", "(() ((", "((a", "b ((1 2", "((-"), 1),),
        (Expected("cannot handle *", since=("bug",), good="good", kind="crash"),),
    ),
    History(
        "nor does it in an assertion",
        {"good": FINE, "bug": REPEATED_ASSERTION},
        (Step("bug", ("Xabc", "Xdefg", "(Xhi (jk))", "known X"), 1),),
        (Expected("the symbol * is known", since=("bug",), good="good", kind="assertion"),),
    ),
    History(
        "two overflows in one file are two findings, each with any numbers",
        {"good": FINE, "bug": TWO_OVERFLOWS},
        (Step("bug", ("X", "Y", "Z"), 2),),
        (Expected("in add", since=("bug",), good="good", kind="sanitizer"),
         Expected("in less", since=("bug",), good="good", kind="sanitizer")),
        compiler=UNDEFINED,
    ),
    History(
        "a report that every run prints does not hide what ends the program",
        {"good": FINE, "bug": NOISY},
        (Step("bug", ("a", "X", "Y"), 3),),
        (Expected("signed integer overflow", since=("bug",), good="good", kind="sanitizer"),
         Expected("SIGSEGV in stop", since=("bug",), good="good", kind="crash"),
         Expected("assertion", since=("bug",), good="good", kind="assertion")),
        compiler=UNDEFINED,
    ),
    History(
        "a report counts also if the program is then too slow",
        {"good": FINE, "bug": SLOW_REPORT, "fix": FINE},
        (Step("bug", ("X",), 1), Step("fix", (), 0)),
        (Expected("signed integer overflow", "closed", ("bug",), "good", gone="fix",
                  kind="sanitizer"),),
        compiler=UNDEFINED, settings=f"input_timeout: {SHORT_MS}ms", long=True,
    ),
    History(
        "a flaky silent crash is named by its place",
        {"good": FINE, "bug": SOMETIMES, "fix": FINE},
        (Step("bug", ("X", "aX"), 1), Step("bug", ("bX",), 1), Step("fix", (), 0)),
        (Expected("SIGSEGV in third", "closed", ("bug",), "good", gone="fix"),),
    ),
    History(
        "a crash that comes rarely is kept, blames nobody, and is closed after enough quiet runs",
        {"good": FINE, "bug": RARELY, "fix": FINE},
        (Step("bug", ("X",), 1), Step("fix", (), 1), Step("fix", (), 1), Step("fix", (), 0)),
        (Expected("SIGSEGV", "closed", ("bug",), None, exact=False, gone="fix"),),
    ),
    History(
        "a crash is one, also if the input that the program prints mentions memory",
        {"good": FINE, "bug": SAYS_MEMORY},
        (Step("bug", ("X: out of memory",), 1),),
        (Expected("SIGABRT", since=("bug",), good="good", kind="crash"),),
    ),
)  # fmt: skip
