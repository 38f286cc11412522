"""The documentation builds as a site without a warning; its pages fetch nothing from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dashboard.farm import PHONE, WIDE, running_browser

ROOT = Path(__file__).resolve().parents[2]
FETCHED = re.compile(r"<(?:script|img|iframe)[^>]*\ssrc=\"([^\"]+)\"|<link[^>]*\shref=\"([^\"]+)\"")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it: a dead link or anchor is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def build(config: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Not with --quiet: mkdocs counts the warnings that it prints."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-f", config, "-d", folder],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_pages_fetch_nothing_from_elsewhere(site: Path) -> None:
    fetched = {
        (page.relative_to(site).as_posix(), "".join(found))
        for page in site.rglob("*.html")
        for found in FETCHED.findall(page.read_text())
    }
    assert any(page == "index.html" for page, _ in fetched)
    assert {one for one in fetched if re.match(r"(?:https?:)?//", one[1])} == set()


def test_every_page_can_be_searched(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text()
    pages = {page.relative_to(site).as_posix() for page in site.rglob("*.html")} - {"404.html"}
    assert {page for page in pages if f'"location":"{page}"' not in index} == set()


def test_a_diagram_is_drawn_without_a_network_on_a_phone_and_in_the_dark(site: Path) -> None:
    with running_browser() as browser:
        wide = browser.new_context(viewport=WIDE, color_scheme="light", offline=True)
        phone = browser.new_context(viewport=PHONE, color_scheme="dark", offline=True)
        for context, scheme in ((wide, "default"), (phone, "slate")):
            page = context.new_page()
            page.goto((site / "reference" / "states.html").as_uri())
            page.wait_for_function("document.querySelector('div.mermaid')?.clientHeight > 100")
            assert page.evaluate("document.body.dataset.mdColorScheme") == scheme
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_dead_anchor_is_an_error(tmp_path: Path) -> None:
    pages = tmp_path / "docs"
    pages.mkdir()
    (pages / "index.md").write_text("# One\n\n[two](#two)\n")
    config = tmp_path / "mkdocs.yml"
    text = (ROOT / "mkdocs.yml").read_text()
    text = re.sub(r"^nav:\n(?:[ \n].*\n?)*", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(?:hooks|extra_css): .*\n", "", text, flags=re.MULTILINE)
    config.write_text(text)
    done = build(config, tmp_path / "site")
    assert done.returncode != 0
    assert "#two" in done.stdout + done.stderr
