"""What mkdocs.yml asks of us: diagrams without a server of others, and links out of docs/.

`make docs` calls mkdocs, and mkdocs these functions by their names.
"""

import posixpath
import re
import shutil
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
# The theme takes a `mermaid` that is there, and fetches one from elsewhere otherwise.
MERMAID: Final = ROOT / "dashboard/node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js"
SCRIPT: Final = "assets/mermaid.js"
LINK: Final = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)\s#]+)(?:#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Names files outside of docs/, which the site does not have, instead of linking to them."""
    folder = posixpath.dirname(page.file.src_uri)

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
    """Copies mermaid beside the pages."""
    shutil.copyfile(MERMAID, Path(config["site_dir"]) / SCRIPT)
