"""Translates failures of a bucket into Windlass errors."""

import os
import re
from typing import Final
from urllib.parse import urlsplit

from windlass.domain.values.errors import StoreUnavailable, WindlassError

METADATA: Final = "169.254.169.254"  # the library looks for credentials there if there are none
ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
NO_KEYS: Final = (
    "expected keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a machine that "
    "has a role; found neither"
)
CHECK_KEYS: Final = "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and their permissions"
_TRIED: Final = re.compile(
    r"Error performing (?P<method>[A-Z]+) (?P<url>\S+) in (?P<took>\S+?)"
    r"(?:, after (?P<again>\d+) retries\b.*?)? +- "
)
_ANSWER: Final = re.compile(r"non-2xx status code: (?P<status>\d{3} ?[A-Za-z ]*)")
_CODE: Final = re.compile(r"<Code>([^<]{1,100})</Code>")
_SAID: Final = re.compile(r"<Message>([^<]{1,200})</Message>")
# The library's texts about connections, usually deeply nested, and their meanings.
_CAUSES: Final = (
    ("ConnectionRefused", "nothing is listening there"),
    ("dns error", "its host name cannot be resolved"),
    ("kind: Timeout", "it did not answer in time"),
    ("InvalidCertificate", "its certificate is not trusted"),
    ("InvalidContentType", "it does not speak TLS; the address may need to start with http://"),
    ("InvalidMessage", "it does not speak TLS; the address may need to start with http://"),
)


def from_bucket(error: Exception, where: str) -> WindlassError:
    """Returns the error for a bucket failure; the operation may or may not have taken effect.

    It says what was tried, what went wrong and what to do, without the path, the query or the
    library's debug text.
    """
    whole = str(error)
    text = " ".join(whole.partition("\n\n")[0].split())
    if METADATA in text:
        text = NO_KEYS
    elif tried := _TRIED.search(text):
        text = _no_answer(whole, tried) or _bad_answer(text, tried) or text
    return StoreUnavailable(f"cannot use {where}: {text}", outcome_unknown=True)


def unreachable_advice() -> str:
    """Returns what to check if an S3 server cannot be reached."""
    for name in ENDPOINTS:
        if os.environ.get(name):
            return f"check {name}, and that the server is running and reachable from here"
    return "check the network, AWS_REGION, and AWS_ENDPOINT_URL if it is not Amazon's server"


def _no_answer(whole: str, tried: re.Match[str]) -> str:
    """Describes a request that got no answer; "" if it got one."""
    if "HTTP error" not in whole:
        return ""
    cause = next((means for sign, means in _CAUSES if sign in whole), "the connection failed")
    return f"{_request(tried)}: {cause}; {unreachable_advice()}"


def _bad_answer(text: str, tried: re.Match[str]) -> str:
    """Describes an error answer; "" if the text has none."""
    answer = _ANSWER.search(text)
    if answer is None:
        return ""
    code, said = _CODE.search(text), _SAID.search(text)
    if code is not None and code[1] == "NoSuchBucket":
        return "the bucket does not exist; correct its name, or create it"
    details = " ".join(part[1] for part in (code, said) if part is not None)
    status = answer["status"].strip()
    told = f"{_request(tried)}: the server answered {status}{f' ({details})' if details else ''}"
    return f"{told}; {CHECK_KEYS}" if status.startswith(("401", "403")) else told


def _request(tried: re.Match[str]) -> str:
    parts = urlsplit(tried["url"])
    address = f"{parts.scheme}://{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")
    times = int(tried["again"] or 0) + 1
    often = f" ({times} times)" if times > 1 else ""
    return f"{tried['method']} to {address} failed{often}"
