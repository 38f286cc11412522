"""What mkdocs.yml asks of us: diagrams and fonts from here, links out of docs/, order of searches.

`make docs` calls mkdocs, and mkdocs these functions by their names.
"""

import posixpath
import re
import shutil
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
# The theme takes a `mermaid` that is there, and fetches one from elsewhere otherwise.
SCRIPT: Final = "assets/mermaid.js"
# What is copied beside the pages, from the packages that the dashboard is built with.
COPIED: Final = {
    SCRIPT: "@mermaid-js/tiny/dist/mermaid.tiny.js",
    "site/inter.woff2": "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2",
    "site/jetbrains-mono.woff2": (
        "@fontsource-variable/jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2"
    ),
}
# A search shows these before the others: what new users ask for,
FIRST: Final = ("start/", "guides/troubleshooting.md")
# and these after them: they are for people who change Windlass, or only names.
LAST: Final = ("decisions/", "architecture/", "reference/http-types.md", "licences.md")
LINK: Final = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)\s#]+)(?:#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Names files outside of docs/ instead of linking to them, and ranks the page in searches."""
    folder = posixpath.dirname(page.file.src_uri)
    if page.file.src_uri.startswith(FIRST):
        page.meta["search"] = {"boost": 2}
    elif page.file.src_uri.startswith(LAST):
        page.meta["search"] = {"boost": 0.1}

    def without_link(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", folder, match[2]))
        return match[0] if path.startswith("docs/") else f"{match[1]} (`{path}`)"

    return LINK.sub(without_link, markdown)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Loads mermaid on the pages that have diagrams."""
    if 'class="mermaid"' not in output:
        return output
    source = posixpath.relpath(SCRIPT, posixpath.dirname(page.file.dest_uri) or ".")
    return output.replace("</head>", f'<script src="{source}"></script></head>', 1)


def on_post_build(config: Any, **_: Any) -> None:
    """Copies mermaid and the fonts."""
    packages = ROOT / "dashboard" / "node_modules"
    for target, source in COPIED.items():
        shutil.copyfile(packages / source, Path(config["site_dir"]) / target)
