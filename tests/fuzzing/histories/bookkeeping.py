"""Histories about closing, reopening and identity: the failure itself is an assertion."""

from tests.fuzzing.histories.planted import FINE, Expected, History, Step, program

PARSE = "static void parse(void) { assert(!(%s)); }"


def parse(condition: str, function: str = "parse") -> str:
    """Returns a program that fails an assertion in `parse` if the condition holds."""
    functions = PARSE.replace("parse", function) % condition
    return program(f"  {function}();", functions)


BUG = parse('has("X")')
# The same assertion, which a fix makes rarer: its text must stay, so the condition is a call.
CHECKED = "static int bad(void) { return %s; }\nstatic void parse(void) { assert(!bad()); }"


def checked(condition: str) -> str:
    return program("  parse();", CHECKED % condition)


HELPER = """\
static int bad(void) { return %s; }
static void check(void) { assert(!bad()); }
"""


def helper(condition: str) -> str:
    return program("  check();", HELPER % condition)


TWO_ASSERTIONS = """\
static int one(void) { return %s; }
static int other(void) { return %s; }
static void first(void) { assert(!one()); }
static void second(void) { assert(!other()); }
"""


def two(first: str, second: str) -> str:
    return program("  first();\n  second();", TWO_ASSERTIONS % (first, second))


def moving(place: str) -> str:
    """Returns a program with four functions, one of which fails an assertion."""
    return program(
        "  in_a();\n  in_b();\n  in_c();\n  in_d();",
        "".join(
            f'static int bad_{name}(void) {{ return {name == place:d} && has("X"); }}\n'
            f"static void in_{name}(void) {{ assert(!bad_{name}()); }}\n"
            for name in "abcd"
        ),
    )


HISTORIES = (
    History(
        "an incomplete fix keeps the finding open",
        {"good": FINE, "bug": checked('has("X")'), "half": checked('has("XX")'),
         "later": checked('has("XX")')},
        (Step("bug", ("X",), 1), Step("half", ("XX",), 1), Step("later", (), 1)),
        (Expected("!bad()", since=("bug",), good="good"),),
    ),
    History(
        "after an incomplete fix, the record shows an input that still fails",
        {"good": FINE, "bug": checked('has("X")'), "half": checked('has("XX")')},
        (Step("bug", ("X", "XXX"), 1), Step("half", (), 1)),
        (Expected("!bad()", since=("bug",), good="good"),),
    ),
    History(
        "an incomplete fix and then a complete one",
        {"good": FINE, "bug": checked('has("X")'), "half": checked('has("XX")'), "fix": FINE},
        (Step("bug", ("X", "XXX"), 1), Step("half", (), 1), Step("fix", (), 0)),
        (Expected("!bad()", "closed", ("bug",), "good", gone="fix"),),
    ),
    History(
        "an incomplete fix mends the smallest and the largest inputs, and one between them is kept",
        {"good": FINE, "bug": checked('has("X")'), "half": checked('has("XbX")'), "fix": FINE},
        (Step("bug", ("X", "aXa", "XbXbXb", "XcccccccccccccX", "ddXdddddddddddddddd"), 1),
         Step("half", (), 1), Step("fix", (), 0)),
        (Expected("!bad()", "closed", ("bug",), "good", gone="fix"),),
    ),
    History(
        "a bug whose fix only looked complete was never gone",
        {"good": FINE, "bug": checked('has("X")'), "half": checked('has("XX")')},
        (Step("bug", ("X",), 1), Step("half", (), 0), Step("half", ("XX",), 1)),
        (Expected("!bad()", since=("bug",), good="good"),),
    ),
    History(
        "a renamed function closes nothing",
        {"good": FINE, "bug": BUG, "renamed": parse('has("X")', "parse_all")},
        (Step("bug", ("X",), 1), Step("renamed", (), 1)),
        (Expected("parse", since=("bug",), good="good"),),
    ),
    History(
        "a renamed function makes no second finding",
        {"good": FINE, "bug": BUG, "renamed": parse('has("X")', "parse_all"), "fix": FINE},
        (Step("bug", ("X",), 1), Step("renamed", ("aX", "X"), 1), Step("fix", (), 0)),
        (Expected("parse", "closed", ("bug",), "good", gone="fix"),),
    ),
    History(
        "a bug found after the renaming is not blamed on it",
        {"good": FINE, "bug": BUG, "renamed": parse('has("X")', "parse_all")},
        (Step("renamed", ("X",), 1),),
        (Expected("parse_all", since=("bug",), good="good"),),
    ),
    History(
        "moved lines change nothing",
        {"good": FINE, "bug": BUG, "moved": "\n\n\n/* more */\n\n" + BUG},
        (Step("bug", ("X",), 1), Step("moved", ("X",), 1)),
        (Expected("parse", since=("bug",), good="good"),),
    ),
    History(
        "a bug that comes, goes and comes back has two origins",
        {"good": FINE, "bug": BUG, "fix": FINE, "again": BUG, "later": BUG},
        (Step("bug", ("X",), 1), Step("fix", (), 0), Step("later", (), 1)),
        (Expected("parse", since=("bug", "again"), good="fix"),),
    ),
    History(
        "a bug that came back and is found for the first time",
        {"good": FINE, "bug": BUG, "fix": FINE, "again": BUG, "later": BUG, "last": BUG},
        (Step("last", ("X",), 1),),
        (Expected("parse", since=("again",), good="fix"),),
    ),
    History(
        "two bugs with one signature have their own origins",
        {"good": FINE, "one": helper('has("X")'), "two": helper('has("X") || has("Y")'),
         "half": helper('has("Y")'), "fix": FINE},
        (Step("one", ("X",), 1), Step("two", ("Y",), 1), Step("half", (), 1), Step("fix", (), 0)),
        (Expected("!bad()", "closed", ("one", "two"), "one", gone="fix"),),
    ),
    History(
        "two bugs in one function are two findings",
        {"good": FINE, "one": two('has("X")', "0"), "both": two('has("X")', 'has("Y")'),
         "half": two("0", 'has("Y")')},
        (Step("one", ("X",), 1), Step("both", ("X", "Y"), 2), Step("half", (), 1)),
        (Expected("!one()", "closed", ("one",), "good", gone="half"),
         Expected("!other()", since=("both",), good="one")),
    ),
    History(
        "a bug behind another one is not gone when its input stops there",
        {"good": FINE, "both": two("0", 'has("Y")'), "hidden": two('has("Y")', 'has("Y")'),
         "front": two('has("Y")', "0"), "fix": FINE},
        (Step("both", ("Y",), 1), Step("hidden", ("aY",), 2), Step("front", (), 2),
         Step("fix", (), 0)),
        (Expected("!other()", "closed", ("both",), "good", gone="fix"),
         Expected("!one()", "closed", ("hidden",), "good", exact=False, gone="fix",
                  suspects=("both", "hidden"))),
    ),
    History(
        "a bug that another one hid is a finding of its own once that is fixed, and blames nobody",
        {"good": FINE, "first": two('has("X")', "0"), "hidden": two('has("X")', 'has("X")'),
         "fixed": two("0", 'has("X")'), "fix": FINE},
        (Step("first", ("X",), 1), Step("fixed", (), 2), Step("fix", (), 0)),
        (Expected("!one()", "closed", ("first",), "good", gone="fix"),
         Expected("!other()", "closed", ("fixed",), "good", exact=False, gone="fix",
                  suspects=("first", "hidden", "fixed"))),
    ),
    History(
        "a failure that moves from function to function is at most two findings",
        {"good": moving(""), "a": moving("a"), "b": moving("b"), "c": moving("c"),
         "d": moving("d"), "fix": moving("")},
        (Step("a", ("X",), 1), Step("b", (), 2), Step("c", ("X",), 2), Step("d", ("aX",), 2),
         Step("fix", (), 0)),
        (Expected("in_a", "closed", ("a",), "good", gone="fix"),
         Expected("in_b", "closed", ("b",), "good", exact=False, gone="fix")),
    ),
    History(
        "an input that meets another known bug keeps both open",
        {"good": FINE, "one": two('has("X")', "0"), "both": two('has("X")', 'has("Y")'),
         "masked": two("0", 'has("Y") || has("X")'), "fix": FINE},
        (Step("one", ("X",), 1), Step("both", ("Y",), 2), Step("masked", (), None),
         Step("masked", ("X",), 2), Step("fix", (), 0)),
        (Expected("!one()", "closed", ("one",), "good", gone="fix"),
         Expected("!other()", "closed", ("both",), "one", gone="fix")),
        long=True,
    ),
    History(
        "an older commit that is fine closes nothing",
        {"good": FINE, "bug": BUG, "later": BUG},
        (Step("later", ("X",), 1), Step("good", (), 1)),
        (Expected("parse", since=("bug",), good="good"),),
    ),
    History(
        "an older commit that still has the bug does not bring it back",
        {"good": FINE, "bug": BUG, "later": BUG, "fix": FINE, "after": FINE},
        (Step("bug", ("X",), 1), Step("fix", (), 0), Step("later", ("X", "aXa"), 0),
         Step("bug", (), 0), Step("after", (), 0)),
        (Expected("parse", "closed", ("bug",), "good", gone="fix"),),
    ),
    History(
        "nor does it bring it back if there is no time left",
        {"good": FINE, "bug": BUG, "later": BUG, "fix": FINE},
        (Step("bug", ("X",), 1), Step("fix", (), 0), Step("later", ("X", "aXa"), 0, late=True)),
        (Expected("parse", "closed", ("bug",), "good", gone="fix"),),
    ),
    History(
        "an input of an older commit that the fix does not mend brings the finding back",
        {"good": FINE, "bug": checked('has("X")'), "half": checked('has("XX")'), "fix": FINE},
        (Step("bug", ("X",), 1), Step("half", (), 0), Step("bug", ("XX",), 1),
         Step("half", (), 1), Step("fix", (), 0)),
        (Expected("!bad()", "closed", ("bug",), "good", gone="fix"),),
    ),
    History(
        "an older commit brings a bug back if the build of the fix is gone",
        {"good": FINE, "bug": BUG, "later": BUG, "fix": FINE},
        (Step("bug", ("X",), 1), Step("fix", (), 0), Step("later", ("aXa",), 1, lost=("fix",))),
        (Expected("parse", since=("bug",), good="good"),),
    ),
    History(
        "a bug of all builds blames nobody",
        {"first": BUG, "second": BUG},
        (Step("second", ("X",), 1),),
        (Expected("parse", since=("first",), good=None, exact=False),),
    ),
    History(
        "after a forced push, the bug is that of the new commits, and their fix closes it",
        {"good": FINE, "bug": BUG, "better": FINE, "moved": BUG, "fix": FINE},
        (Step("bug", ("X",), 1), Step("better", (), 1, made=("better", "moved"),
                                      moves={"main": "moved"}),
         Step("moved", (), 1), Step("fix", (), 0, made=("fix",), moves={"main": "fix"})),
        (Expected("parse", "closed", ("moved",), "better", gone="fix"),),
        lines={"again": ("good", ("better", "moved", "fix"))},
    ),
    History(
        "a fix on another branch closes nothing",
        {"good": FINE, "bug": BUG, "elsewhere": FINE},
        (Step("bug", ("X",), 1), Step("elsewhere", (), 1)),
        (Expected("parse", since=("bug",), good="good"),),
        side=("elsewhere",),
    ),
)  # fmt: skip
