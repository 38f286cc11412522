"""The stored record of one bug: its inputs, its signatures, and its origins."""

import base64
from typing import Final, Literal

import msgspec

from windlass_fuzz.config.finding_settings import FailureKind
from windlass_fuzz.engines.signature import start_of_failure
from windlass_fuzz.state.documents import Codec, struct_codec

State = Literal["open", "flaky", "quarantined", "closed"]
BranchState = Literal["alive", "fixed", "unsure"]
LIVE: Final[tuple[State, ...]] = ("open", "flaky", "quarantined")
SHOWN: Final = 20  # how many commits that showed the bug are listed
SIGNATURES: Final = 50
OUTPUT: Final = 8_000  # characters of the program's output
MAX_LINE: Final = 500  # characters of a line of long output
EXCERPT: Final = 1_000  # an input of at most this many bytes is shown


class Evidence(msgspec.Struct, kw_only=True, frozen=True):
    """How an input last ran with a combination that it broke."""

    target: str = ""
    checked_in: str = ""
    checked: str = "fails"


class KeptInput(msgspec.Struct, kw_only=True, frozen=True):
    """An input that breaks builds; `name` is its file next to the record.

    `title` is its signature when it was last run, `origin` the number of the origin that it belongs
    to. `checked_in` is the last commit it was run with, and `checked` the result: `fails`, `fine`,
    or why that is not known. `masked_by` is the finding whose signature it shows now.
    `combinations` are those of the matrix that it broke; `checked` then summarises them. It failed
    in `shown` of `tried` runs, including all checks, and in none of the last `quiet` runs.
    `checker` is the part of the build that reported it, such as a sanitizer: a build without it is
    no evidence. `before` says how the last good build ran it, `source` is the input that it was
    reduced from.
    """

    name: str
    size: int
    title: str
    found_in: str
    shown: int
    tried: int
    origin: int = 0
    checked_in: str = ""
    checked: str = "fails"
    masked_by: str = ""
    minimised: bool = True
    combinations: dict[str, Evidence] = {}
    quiet: int = 0
    checker: str = ""
    before: str = ""
    source: str = ""


LATE: Final = "the search ran out of time"


class Origin(msgspec.Struct, kw_only=True, frozen=True):
    """One time that the bug appeared: the result of one search with one input.

    The bug came after `last_good` and not after `first_bad`. `suspects` are the commits between
    them (at most some of `suspect_count`), `assumed` lists the assumptions of the search, and
    `tried` the builds that it ran, those of one `combination`; the `unclear` ones did not say
    whether they have it. `gone_in` is the commit that ended this time. `line_bad` is the first bad
    commit before the search entered a merge, if it did.
    """

    first_bad: str
    last_good: str | None = None
    subject: str = ""
    suspects: list[str] = []
    suspect_count: int = 0
    assumed: list[str] = []
    tried: list[str] = []
    unclear: list[str] = []
    input: str = ""
    combination: str = ""
    gone_in: str | None = None
    searched_at_ms: int = 0
    line_bad: str = ""

    @property
    def exact(self) -> bool:
        """Returns whether the search leaves only one commit."""
        return self.last_good is not None and self.suspect_count <= 1

    @property
    def culprit(self) -> str:
        """Returns the commit to blame if only one is left, else the first bad build."""
        return self.suspects[0] if self.exact and self.suspects else self.first_bad

    @property
    def cut_short(self) -> bool:
        """Returns whether there was no time to try all builds."""
        return LATE in self.assumed

    @property
    def width(self) -> tuple[bool, int]:
        """Returns how uncertain it is; smaller is better."""
        return self.last_good is None, self.suspect_count


class Fix(Origin, kw_only=True, frozen=True):
    """The end of a bug: the result of the same search, with good and bad exchanged."""

    @property
    def first_good(self) -> str:
        """Returns the first build that runs all inputs fine."""
        return self.first_bad

    @property
    def last_bad(self) -> str | None:
        """Returns the last build before it that shows the bug, if known."""
        return self.last_good


class OnBranch(msgspec.Struct, kw_only=True, frozen=True):
    """What is known about the bug on one of several branches.

    `shown` are the newest commits of the branch that showed it. `since` is the first commit on the
    branch's own line that has it, `exact` if that is certain, and `merge` the merge through which
    it came. `fixed_in` ran all inputs fine, those in `fixed_with`. After a forced push, only
    `moved_to` or a later commit can be the fix. `back` means that it was fixed before.
    """

    name: str
    state: BranchState = "alive"
    why: str = ""
    since: str | None = None
    merge: str | None = None
    exact: bool = False
    fixed_in: str | None = None
    fixed_with: list[str] = []
    shown: list[str] = []
    moved_to: str | None = None
    back: bool = False
    watched: bool = True


class Finding(msgspec.Struct, kw_only=True, frozen=True):
    """A bug.

    `input`, `size`, `excerpt`, `combination`, `command`, `shown`, `tried` and `output` are about
    the smallest input that fails; `inputs` lists all that are kept. `shown` of `tried` runs failed.
    `output` is of the run of the input `output_of` with the build of `output_in`. `introduced_by`,
    `last_good` and `introduced_subject` repeat the newest of `origins`: the first build that shows
    the bug, and the newest one before it that does not; without `last_good` the bug is as old as
    the oldest build. `suspects` lists the commits between. `old` means that the fuzzed commit did
    not introduce it. `ends` are the fixes, by the commit that ran all inputs fine. `group` is
    shared by findings that share a frame. A short input is in `excerpt` if it is text, else in
    `binary` as base64. `branches` is filled if the solver has several; `issue_branches` is what its
    issue says about them.
    """

    key: str
    title: str
    kind: FailureKind = "crash"
    state: State = "open"
    engine: str
    combination: str = ""
    command: list[str]
    input: str
    size: int
    excerpt: str = ""
    binary: str = ""
    shown: int
    tried: int
    output: str = ""
    output_of: str = ""
    output_in: str = ""
    found_in: str
    found_at_ms: int
    times: int = 1
    seen_in: list[str] = []
    old: bool = False
    introduced_by: str | None = None
    introduced_subject: str = ""
    last_good: str | None = None
    suspects: list[str] = []
    closed_in: str | None = None
    closed_at_ms: int = 0
    closed_by: str = ""
    closed_why: str = ""
    reopened: int = 0
    issue: str = ""
    issue_closed: bool = False
    issue_at_ms: int = 0
    issue_claim_ms: int = 0
    issue_branches: dict[str, str] = {}
    issue_updates: int = 0
    issue_told_ms: int = 0
    signatures: list[str] = []
    frames: list[str] = []
    group: str = ""
    inputs: list[KeptInput] = []
    origins: list[Origin] = []
    ends: dict[str, Fix] = {}
    moments: dict[str, int] = {}
    branches: list[OnBranch] = []
    unsure: str = ""
    note: str = ""

    @property
    def fixes(self) -> list[str]:
        """Returns the commits that ran all inputs fine, on any branch."""
        found = [self.closed_in, *(one.fixed_in for one in self.branches)]
        return list(dict.fromkeys(commit for commit in found if commit))

    @property
    def current_origin(self) -> Origin | None:
        """Returns the newest origin that has not ended, else the newest one."""
        return next(reversed([o for o in self.origins if o.gone_in is None] or self.origins), None)

    @property
    def shown_in(self) -> str:
        """Returns the commit whose build showed the input of this record."""
        return self.output_in or self.found_in

    @property
    def live(self) -> bool:
        """Returns whether the bug is still there, as far as we know."""
        return self.state in LIVE

    @property
    def names(self) -> frozenset[str]:
        """Returns all signatures under which it was seen."""
        return frozenset([self.title, *self.signatures])

    @property
    def combinations(self) -> list[str]:
        """Returns the combinations of the matrix that its inputs broke."""
        return sorted({name for one in self.inputs for name in one.combinations})

    @property
    def targets(self) -> set[str]:
        """Returns the targets of these combinations."""
        return {ran.target for one in self.inputs for ran in one.combinations.values()}


def excerpt_of(data: bytes) -> str:
    """Returns an input as text, or "" if it is long or not text."""
    if len(data) > EXCERPT:
        return ""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    return text if all(c.isprintable() or c in "\n\t" for c in text) else ""


def binary_of(data: bytes) -> str:
    """Returns a short input that is not text as base64, or ""."""
    return base64.b64encode(data).decode() if len(data) <= EXCERPT and not excerpt_of(data) else ""


def shorten(output: str, limit: int = OUTPUT) -> str:
    """Cuts the middle of a long output: a report starts with the error and ends with a summary.

    Output from before the error gets a quarter of the room, and long lines are cut.
    """
    if len(output) <= limit:
        return output
    output = "\n".join(map(_short_line, output.split("\n")))
    start, before = start_of_failure(output), limit // 4
    if start <= before:
        return _without_middle(output, limit)
    shown = _without_middle(output[start:], limit - before)
    return f"{_without_middle(output[:start], before)}\n{shown}"


def _without_middle(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[{len(text) - limit} characters omitted]\n{text[-half:]}"


def _short_line(line: str) -> str:
    left = len(line) - MAX_LINE
    return line if left <= 0 else f"{line[:MAX_LINE]} [{left} characters omitted]"


FINDING: Final[Codec[Finding | None]] = struct_codec("finding.json", Finding, None)
