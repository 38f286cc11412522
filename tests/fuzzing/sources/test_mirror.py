"""The mirror of a repository: what names mean, shallow clones, and git's own settings."""

import subprocess
from pathlib import Path

import pytest

from tests.fuzzing.support.repository import Repository
from tests.support.running import run
from windlass.domain.values.errors import NotFound, Unreachable, WindlassError
from windlass_fuzz.sources.mirror import Mirror, check_repository


class Clones:
    """A repository, and clones of it as CI makes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.origin = Repository(folder / "origin")

    def clone(self, name: str, *options: str) -> Path:
        address = f"file://{self.origin.folder}"
        made = self.folder / name
        subprocess.run(["git", "clone", "--quiet", *options, address, made], check=True)
        return made

    def pull_request(self, name: str, merge: str) -> Path:
        """Checks out a merge as GitHub's action does: detached, and without branches of its own."""
        made = self.folder / name
        heads = "+refs/heads/*:refs/remotes/origin/*"
        for words in (
            ("init", "--quiet"),
            ("fetch", "--quiet", f"file://{self.origin.folder}", heads,
             f"+{merge}:refs/remotes/pull/1/merge"),
            ("checkout", "--quiet", "--detach", "refs/remotes/pull/1/merge"),
        ):  # fmt: skip
            made.mkdir(exist_ok=True)
            subprocess.run(["git", "-C", made, *words], check=True)
        return made


@pytest.fixture
def clones(tmp_path: Path) -> Clones:
    return Clones(tmp_path)


def fetched(repository: Path, folder: Path) -> Mirror:
    mirror = Mirror(str(repository), folder / "mirror.git")
    run(mirror.fetch())
    return mirror


def test_a_shallow_clone_that_got_its_history_is_read_again(clones: Clones) -> None:
    first, second = clones.origin.commit("a.c"), clones.origin.commit("b.c")
    shallow = clones.clone("shallow", "--depth=1")
    mirror = fetched(shallow, clones.folder)
    with pytest.raises(WindlassError, match="shallow clone; run `git fetch --unshallow`"):
        run(mirror.resolve(first))
    subprocess.run(["git", "-C", shallow, "fetch", "--quiet", "--unshallow"], check=True)
    mirror = fetched(shallow, clones.folder)
    assert run(mirror.merge_base(run(mirror.resolve(first)), second)) == first


def test_two_commits_of_a_shallow_clone_say_why_they_have_nothing_in_common(clones: Clones) -> None:
    clones.origin.commit("a.c")
    clones.origin.branch("side")
    one = clones.origin.commit("b.c")
    clones.origin.switch("main")
    other = clones.origin.commit("c.c")
    shallow = clones.clone("shallow", "--depth=1", "--no-single-branch")
    mirror = fetched(shallow, clones.folder)
    with pytest.raises(WindlassError, match="shallow"):
        run(mirror.merge_base(one, other))


def test_a_name_means_what_it_means_in_the_repository(clones: Clones) -> None:
    first, second = clones.origin.commit("a.c"), clones.origin.commit("b.c")
    mirror = fetched(clones.origin.folder, clones.folder)
    clones.origin.branch("side", first)
    third, fourth = clones.origin.commit("c.c"), clones.origin.commit("d.c")
    run(mirror.fetch())
    names = {"HEAD": fourth, "@": fourth, "HEAD~1": third, "HEAD^": third, "main": second,
             "side~2": first, fourth[:12]: fourth}  # fmt: skip
    assert {name: run(mirror.resolve(name)) for name in names} == names
    for missing in ("nowhere", "HEAD~9", "0" * 40, "--upload-pack=touch hacked"):
        with pytest.raises(NotFound):
            run(mirror.resolve(missing))


def test_a_folder_of_a_repository_leads_to_its_top(clones: Clones) -> None:
    clones.origin.commit("solvers/toy.yaml")
    folder = clones.origin.folder / "solvers"
    for work in (check_repository(str(folder), "main"), Mirror(str(folder), clones.folder).fetch()):
        with pytest.raises(Unreachable, match=f"set `repository: ..`, .*{clones.origin.folder} "):
            run(work)


def test_a_job_that_does_not_see_a_repository_is_told_why(
    clones: Clones, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_JOB", "7")
    with pytest.raises(Unreachable, match=r"this job does not see /nowhere.*--share /nowhere"):
        run(check_repository("/nowhere", "main"))


def test_in_a_checkout_of_ci_the_branches_are_those_of_its_origin(clones: Clones) -> None:
    base = clones.origin.commit("a.c")
    _, merge = clones.origin.merge("b.c")
    clones.origin.git("reset", "--quiet", "--hard", base)
    mirror = fetched(clones.pull_request("checkout", merge), clones.folder)
    assert run(mirror.resolve("main")) == base
    assert run(mirror.resolve("HEAD")) == merge
    assert run(mirror.resolve(f"{merge}^1")) == base


def test_a_repository_that_a_hook_of_git_is_about_is_left_alone(
    clones: Clones, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = clones.origin.commit("a.c")
    other = clones.clone("other")
    before = (other / ".git/config").read_text()
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    mirror = fetched(clones.origin.folder, clones.folder)
    run(mirror.fetch())
    assert run(mirror.checkout("main", clones.folder / "checkout")) == commit
    assert (other / ".git/config").read_text() == before
    assert (clones.folder / "checkout/a.c").exists()


def test_a_relative_address_of_a_submodule_starts_where_the_repository_comes_from(
    clones: Clones, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file")
    part = Repository(clones.folder / "part")
    part.commit("part.h")
    clones.origin.git("submodule", "--quiet", "add", "../part", "third_party/part")
    clones.origin.commit("a.c")
    (clones.folder / "elsewhere").mkdir()
    for repository in (clones.origin.folder, clones.clone("elsewhere/clone")):
        mirror = Mirror(str(repository), clones.folder / f"mirrors/{repository.name}")
        run(mirror.fetch())
        checkout = clones.folder / "checkout"
        run(mirror.checkout("main", checkout))
        assert (checkout / "third_party/part/part.h").exists()


@pytest.mark.parametrize(
    "setting",
    ["diff.noprefix=true", "diff.mnemonicPrefix=true", "log.showSignature=true",
     "safe.bareRepository=explicit", "clone.defaultRemoteName=other"],
)  # fmt: skip
def test_what_a_user_configured_changes_nothing(
    clones: Clones, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    path = clones.origin.folder / "größe.c"
    path.write_text("int one(void) {\n  return 1;\n}\n")
    clones.origin.commit()
    path.write_text("int one(void) {\n  return 2;\n}\n")
    commit = clones.origin.commit()
    name, _, value = setting.partition("=")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", name)
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", value)
    mirror = fetched(clones.origin.folder, clones.folder)
    run(mirror.fetch())
    assert [(one.path, one.name) for one in run(mirror.changed(commit))] == [("größe.c", "one")]
    assert run(mirror.resolve("HEAD")) == commit
    assert run(mirror.subject(commit)).startswith("a, ")
