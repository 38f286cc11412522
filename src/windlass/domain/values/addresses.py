"""Addresses of stores, as messages show them."""

from urllib.parse import parse_qsl, urlencode, urlsplit


def without_password(address: str) -> str:
    """Returns an address that may be shown, and that works where the password is known."""
    parts = urlsplit(address)
    user, at, place = parts.netloc.rpartition("@")
    kept = [pair for pair in parse_qsl(parts.query) if pair[0] != "password"]
    query = f"?{urlencode(kept, safe='/')}" if kept else ""
    return f"{parts.scheme}://{user.partition(':')[0]}{at}{place}{parts.path}{query}"
