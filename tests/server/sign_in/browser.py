"""Goes through the pages of the identity provider, as a person with a browser does."""

import re
from collections.abc import Mapping
from html import unescape
from urllib.parse import urljoin

import httpx

_FORM = re.compile(r"<form[^>]*action=\"([^\"]*)\"[^>]*>(.*?)</form>", re.DOTALL)
_FIELD = re.compile(r"<input[^>]*name=\"([^\"]*)\"(?:[^>]*value=\"([^\"]*)\")?")


async def follow(browser: httpx.AsyncClient, reply: httpx.Response, until: str) -> httpx.Response:
    """Follows redirects, but not to an address that begins with `until`."""
    while reply.is_redirect:
        target = urljoin(str(reply.url), reply.headers["Location"])
        if target.startswith(until):
            return reply
        reply = await browser.get(target)
    return reply


async def fill_in(
    browser: httpx.AsyncClient, page: httpx.Response, **values: str
) -> httpx.Response:
    """Sends the first form of a page, with these values in its fields."""
    assert page.status_code == 200, (page.status_code, page.text[:2000])
    found = _FORM.search(page.text)
    assert found is not None, page.text[:2000]
    fields = {name: unescape(value or "") for name, value in _FIELD.findall(found[2])}
    form: Mapping[str, str] = {**fields, **values}
    return await browser.post(urljoin(str(page.url), unescape(found[1])), data=form)


async def sign_in(
    browser: httpx.AsyncClient, address: str, name: str, to: str = "/"
) -> httpx.Response:
    """Goes from our login to the provider and signs in; returns the redirect to our callback."""
    begun = await browser.get(f"{address}/auth/login", params={"to": to})
    assert begun.status_code == 302, begun.text
    callback = f"{address}/auth/callback"
    page = await follow(browser, begun, callback)
    if page.is_redirect:
        return page  # the provider knows this browser
    return await follow(
        browser, await fill_in(browser, page, login=name, password="x"), callback
    )  # fmt: skip


async def approve_device(browser: httpx.AsyncClient, url: str, name: str) -> None:
    """Opens the page of a device code and signs in there."""
    page = await browser.get(url)
    confirm = await fill_in(browser, page)
    while 'name="login"' not in confirm.text:
        confirm = await follow(browser, await fill_in(browser, confirm), "nowhere:")
    done = await fill_in(browser, confirm, login=name, password="x")
    done = await follow(browser, done, "nowhere:")
    if 'value="consent"' in done.text:
        done = await follow(browser, await fill_in(browser, done), "nowhere:")
    assert done.status_code == 200, done.text
