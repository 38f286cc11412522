"""Makes the git history of a project with planted bugs, one push after another."""

from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzzing.real.sources import sources_of
from tests.fuzzing.support.repository import Repository
from tests.fuzzing.trial.planted import PUSHES, Change, Part, Planted

BUILD = """\
set -e
case "$1" in
production) flags="-fsanitize=fuzzer,address" ;;
coverage) flags="-fsanitize=fuzzer -fprofile-instr-generate -fcoverage-mapping" ;;
esac
flags="$flags -O0 -gline-tables-only -w -include assert.h -include stdint.h -I."
exec {compiler} $flags -o target *.{ending}
"""


@dataclass
class Life:
    """What is true of a bug: the commits that brought it and those that fixed it, in order.

    `pushed_ms` is when it was first pushed to a commit that shows it.
    """

    began: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    pushed_ms: int = 0

    @property
    def alive(self) -> bool:
        return len(self.began) > len(self.ended)


class History:
    """The repository of a project, and what is true of its bugs so far."""

    def __init__(self, planted: Planted, folder: Path) -> None:
        self.planted = planted
        self.repository = Repository(folder)
        self.lives: dict[Part, Life] = {part: Life() for part in planted.bugs}
        sources = sources_of(planted.source)
        self._sources = {name: text.replace("\r\n", "\n") for name, text in sources.items()}
        self._old, self._new = planted.renamed
        self._half: set[Part] = set()
        self._broken = self._renamed = self._unmerged = False
        self._made = 0
        ending = self._old.rpartition(".")[2]
        (folder / "tests").mkdir()
        for name, text in planted.seeds.items():
            (folder / "tests" / name).write_text(text)
        (folder / "words.dict").write_text("".join(f'"{word}"\n' for word in planted.words))
        (folder / "build.sh").write_text(BUILD.format(compiler=planted.compiler, ending=ending))
        for name, text in planted.files.items():
            (folder / name).write_text(text)

    def push(self, number: int, now_ms: int) -> None:
        """Makes the commits of a push."""
        start = self.repository.git("rev-parse", "HEAD") if number else ""
        for change in PUSHES[number]:
            self._make(change, start)
        for part, life in self.lives.items():
            masked = part == "masked" and self.lives["masking"].alive
            if life.alive and not masked and not life.pushed_ms:
                life.pushed_ms = now_ms

    def _make(self, change: Change, start: str) -> None:
        git = self.repository.git
        branch = git("branch", "--show-current")
        wanted = "side" if change.side else "main"
        if branch != wanted:
            git("checkout", "--quiet", *(("-b", "side", start) if change.side else ("main",)))
        self._unmerged = change.side or (self._unmerged and change.does != "merge")
        if change.does == "merge":
            self.repository.now_s += 60
            git("merge", "--quiet", "--no-commit", "--no-ff", "-X", "theirs", "side")
        living = {part for part, life in self.lives.items() if life.alive}
        if change.part and "plant" in change.does:
            living.add(change.part)
        if change.does == "half" and change.part:
            self._half.add(change.part)
        if change.part and change.does == "fix":
            living.discard(change.part)
        self._broken = change.does == "plant broken"
        self._renamed |= change.does == "rename"
        unknown: set[Part] = {"merged"} if self._unmerged and not change.side else set()
        self._write(living - unknown)
        commit = self.repository.commit()
        if change.part and "plant" in change.does:
            self.lives[change.part].began.append(commit)
        if change.part and change.does == "fix":
            self.lives[change.part].ended.append(commit)

    def _write(self, living: set[Part]) -> None:
        """Writes the sources with these bugs."""
        self._made += 1
        folder = self.repository.folder
        for name, text in self._sources.items():
            for part in (one for one in self.planted.bugs if one in living):
                bug = self.planted.bugs[part]
                for old, new in bug.half if part in self._half else bug.changes:
                    if bug.file == name:
                        assert text.count(old) == 1, f"{part}: the sources have no {old!r}"
                        text = text.replace(old, new)
            if name == self._old:
                text += f"/* Change {self._made}. */\n" + "#error unfinished\n" * self._broken
                name = self._new if self._renamed else name
            (folder / name).write_text(text)
        if self._renamed:
            (folder / self._old).unlink(missing_ok=True)
