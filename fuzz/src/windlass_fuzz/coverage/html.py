"""Makes the HTML coverage report: with llvm-cov for LLVM builds, with gcovr for gcov builds.

We do not trust the repository of the sources. So a report contains only files below its root, and
the pages that we keep are in one folder, have plain names and contain no scripts.
"""

import html
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

import msgspec

from windlass.domain.values.errors import EXTRAS, MissingExtra
from windlass_fuzz.coverage.reach import Reach
from windlass_fuzz.coverage.tools import CoverageTools
from windlass_fuzz.errors import InvalidSetting

INDEX: Final = "index.html"
PAGE_ENDINGS: Final = (".html", ".css")
MAX_FILES: Final = 5_000
_LINK: Final = re.compile(r"""\bhref\s*=\s*(?P<mark>['"])(?P<target>[^'"]*)(?P=mark)""")
_SCRIPT: Final = re.compile(r"<script\b.*?</script\s*>|<script\b[^>]*/>", re.DOTALL | re.IGNORECASE)


class MadePages(NamedTuple):
    """The tool that made some pages, and the first of them."""

    tool: str
    first_page: str


async def make_html(
    tools: CoverageTools,
    counts: Path,
    reach: Reach,
    sources: Path,
    into: Path,
    first: int | None = None,
) -> MadePages:
    """Writes the pages of a report to a folder.

    `counts` is the folder of the collector, `sources` a checkout of the commit. The first page is
    `index.html`, or has the number `first` if the folder also has pages of other reports.
    """
    made = counts / "html"
    made.mkdir()
    shown = [path for path in sorted(reach.files) if _is_own(sources, path)][:MAX_FILES]
    if not shown:
        raise InvalidSetting("coverage build", "it reaches no source file of this commit")
    profile = await tools.profile(counts)
    if profile is not None:
        await _llvm(tools, profile, shown, sources, made)
    else:
        await _gcovr(tools, reach, shown, sources, made)
    return MadePages("gcovr" if profile is None else "llvm-cov", flatten(made, into, first))


def flatten(made: Path, into: Path, first: int | None = None) -> str:
    """Copies pages and styles into one folder, without scripts, and fixes the links to them.

    Returns the name of the first page: `index.html`, or the page with the number `first`.
    """
    files = sorted(p for p in made.rglob("*") if p.is_file() and p.suffix in PAGE_ENDINGS)
    ordered = sorted(files, key=lambda path: path != made / INDEX)
    names = {path: f"page{n}{path.suffix}" for n, path in enumerate(ordered, first or 0)}
    if first is None:
        names[made / INDEX] = INDEX
    for path in files:
        if path.suffix == ".css":
            shutil.copyfile(path, into / names[path])
            continue
        text = _SCRIPT.sub("", path.read_text(errors="replace"))
        (into / names[path]).write_text(_LINK.sub(lambda m, at=path: _mended(m, at, names), text))  # type: ignore[misc]
    return names[made / INDEX]


def _mended(link: re.Match[str], page: Path, names: dict[Path, str]) -> str:
    """Returns a link to a page of the report under its new name; other links stay as they are."""
    target, sign, fragment = html.unescape(link["target"]).partition("#")
    if not target:
        return link[0]
    path = _plain(page.parent / unquote(target))
    if path not in names:
        return link[0]
    return f'href="{names[path]}{sign}{quote(fragment)}"'


def _plain(path: Path) -> Path:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            del parts[-1:]
        else:
            parts.append(part)
    return Path(*parts)


def _is_own(sources: Path, path: str) -> bool:
    """Returns whether a file is in the checkout: links may lead to any local file."""
    file = sources / path
    return file.is_file() and file.resolve().is_relative_to(sources.resolve())


async def _llvm(
    tools: CoverageTools, profile: Path, shown: list[str], sources: Path, made: Path
) -> None:
    build = tools.build
    await tools.run(
        [
            "llvm-cov", "show", str(build.program), f"--instr-profile={profile}", "--format=html",
            f"--output-dir={made}", f"--path-equivalence={build.root},{sources}",
            "--project-title=Windlass", *(str(build.root / path) for path in shown),
        ],
        profile.parent,
    )  # fmt: skip


async def _gcovr(
    tools: CoverageTools, reach: Reach, shown: list[str], sources: Path, made: Path
) -> None:
    """Gives gcovr the coverage data that we parsed: it cannot map paths of the build itself."""
    if find_spec("gcovr") is None:
        raise MissingExtra("gcovr", EXTRAS["gcovr"])
    gcovr = [sys.executable, "-m", "gcovr"]
    empty = made.parent / "empty"
    empty.mkdir()
    words = [*gcovr, "--json", "-", "--root", str(empty), str(empty)]
    version = msgspec.json.decode(await tools.run(words, made.parent))["gcovr/format_version"]
    trace = made.parent / "trace.json"
    files = [_traced(path, reach) for path in shown]
    trace.write_bytes(msgspec.json.encode({"gcovr/format_version": version, "files": files}))
    await tools.run(
        [
            *gcovr, "--root", str(sources), "--add-tracefile", str(trace), "--html-details",
            str(made / INDEX), "--html-title", "Windlass",
        ],
        made.parent,
    )  # fmt: skip


def _traced(path: str, reach: Reach) -> dict[str, object]:
    source = reach.files[path]
    functions = [
        {"name": function.signature, "lineno": function.line, "execution_count": count,
         "blocks_percent": 100.0 if count else 0.0}
        for function, count in source.functions.items()
    ]  # fmt: skip
    lines = [
        {"line_number": number, "count": count, "branches": []}
        for number, count in sorted(source.lines.items())
    ]
    return {"file": path, "lines": lines, "functions": functions}
