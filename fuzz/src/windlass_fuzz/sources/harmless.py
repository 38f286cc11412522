"""Which files a build does not depend on: a commit that changes only these breaks nothing.

Everything else may: a flag in CMakeLists.txt, a grammar, a script, a submodule.
"""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

_DOCUMENT: Final = re.compile(
    r"(?:.*/)?(?:"
    r"[^/]*\.(?:md|markdown|rst|adoc|tex|bib|pdf|png|jpe?g|gif|svg)"
    r"|(?:README|LICEN[CS]E|COPYING|COPYRIGHT|AUTHORS|CONTRIBUTORS|CONTRIBUTING|NEWS|"
    r"CHANGELOG|CHANGES|TODO|THANKS|MAINTAINERS|CITATION)(?:[.-][^/]*)?"
    r"|\.(?:gitignore|mailmap|editorconfig|clang-format|clang-tidy)"
    r"|\.travis\.yml|\.gitlab-ci\.yml|\.cirrus\.yml|appveyor\.yml"
    r")|\.(?:github|gitlab|circleci)/.*",
    re.IGNORECASE | re.DOTALL,
)
_BUILD: Final = re.compile(
    r"(?:.*/)?(?:CMakeLists\.txt|[^/]*\.(?:cmake|mk|am|ac|in|m4|sh|py|pl|gn|gni|bazel|bzl|build)"
    r"|(?:GNU)?Makefile[^/]*|configure[^/]*|BUILD|WORKSPACE)",
    re.IGNORECASE | re.DOTALL,
)


def may_break(paths: Iterable[str], extensions: Sequence[str], tests: Sequence[str]) -> bool:
    """Returns whether a change of these files can change the behaviour of a build.

    Code can (`extensions`), and so can all files except documents and tests (`tests` are patterns).
    """
    return any(not _harmless(path, tuple(extensions), tests) for path in paths)


def only_documents(paths: Iterable[str], extensions: Sequence[str], inputs: Sequence[str]) -> bool:
    """Returns whether these files are documents that no run reads (`inputs` are patterns)."""
    code = tuple(extensions)
    return all(
        _DOCUMENT.fullmatch(path) is not None
        and not path.lower().endswith(code)
        and not any(fnmatchcase(path, one) for one in inputs)
        for path in paths
    )


def _harmless(path: str, extensions: tuple[str, ...], tests: Sequence[str]) -> bool:
    if path.lower().endswith(extensions):
        return False
    if _DOCUMENT.fullmatch(path):
        return True
    return not _BUILD.fullmatch(path) and any(fnmatchcase(path, test) for test in tests)
