"""A git repository for tests: commits with given dates, branches, merges, force pushes."""

import os
import subprocess
from pathlib import Path

START_S = 1_700_000_000


class Repository:
    """A repository with one branch, `main`; each commit is a minute later than the last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now_s = START_S
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str) -> str:
        moment = f"{self.now_s} +0000"
        person = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org"}
        person |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}
        alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        done = subprocess.run(
            ["git", "-C", self.folder, *words], capture_output=True, text=True, check=True,
            env=os.environ | person | alone
            | {"GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment},
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, *paths: str, at_s: int | None = None) -> str:
        """Changes these files and returns the new commit."""
        self.now_s = self.now_s + 60 if at_s is None else at_s
        for path in paths:
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{path} at {self.now_s}\n")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", f"change {paths}")
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str, at: str = "HEAD") -> None:
        """Makes a branch at a commit, and checks it out."""
        self.git("checkout", "--quiet", "-b", name, at)

    def switch(self, name: str) -> None:
        self.git("checkout", "--quiet", name)

    def rename(self, old: str, new: str) -> str:
        self.git("mv", old, new)
        return self.commit()

    def merge(self, *paths: str) -> tuple[str, str]:
        """Merges a side branch with one commit; returns that commit and the merge."""
        self.git("checkout", "--quiet", "-b", f"side-{self.now_s}")
        inner = self.commit(*paths)
        self.git("checkout", "--quiet", "main")
        self.now_s += 60
        self.git("merge", "--quiet", "--no-ff", "--message", "merge", inner)
        return inner, self.git("rev-parse", "HEAD")
