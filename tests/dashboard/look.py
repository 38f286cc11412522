"""Takes pictures of a running server's dashboard, to look at while developing.

python -m tests.dashboard.look --server http://127.0.0.1:7420 --token "$(cat DATA/admin-token)" \
    --out /tmp/pictures / /jobs "/jobs/1?tab=log"
"""

import argparse
import re
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from tests.dashboard import chromium

WIDE = {"width": 1360, "height": 860}
PHONE = {"width": 390, "height": 844}


def main() -> None:
    """Takes a picture of each path: dark, light, and light at phone width."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", choices=["dark", "light", "phone"])
    parser.add_argument("paths", nargs="+")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    program = chromium.unpacked()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program,
            args=list(chromium.FLAGS),
            env={**chromium.environment(program)},
        )
        for kind in ("light", "dark", "phone"):
            if asked.only and kind != asked.only:
                continue
            context = browser.new_context(
                viewport=PHONE if kind == "phone" else WIDE,  # type: ignore[arg-type]
                color_scheme="dark" if kind == "dark" else "light",
                locale="en-US",
            )
            page = context.new_page()
            page.on("console", lambda message: print("console:", message.text))
            page.on("pageerror", lambda error: print("error:", error))
            sign_in(page, asked.server, asked.token)
            for path in asked.paths:
                page.goto(asked.server + path)
                settle(page)
                name = re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-") or "overview"
                target = asked.out / f"{name}-{kind}.png"
                page.screenshot(path=target)
                print(target)
            context.close()
        browser.close()


def sign_in(page: Page, server: str, token: str) -> None:
    """Signs in with a token."""
    page.goto(f"{server}/sign-in")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/sign-in" not in url)


def settle(page: Page) -> None:
    """Waits until the view has been loaded and its first answers have come."""
    page.locator("#content h1").first.wait_for()
    expect(page.locator("[role=status][aria-label^=Loading]")).to_have_count(0)
    page.evaluate("() => document.fonts.ready.then(() => new Promise(requestAnimationFrame))")


if __name__ == "__main__":
    main()
