"""The digests of all files of the versions in the lock: `python -m tests.supply.digests`.

pip knows where packages come from and is asked for its lists of files, so that the lock holds the
digests for every platform and no file of ours says where they were found. There is no public
interface for that; `make lock-hashes` is the only user.
"""

import sys
from collections.abc import Iterator
from typing import Final

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version
from pip._internal.commands.index import IndexCommand
from pip._internal.index.collector import LinkCollector, parse_links
from pip._internal.models.link import Link

from tests.supply.lock_file import LOCK, Pin, read_lock

SHA256: Final = "sha256"


def with_digests(collector: LinkCollector, pin: Pin) -> Pin:
    """Returns a pin with the digests of all its files."""
    digests = {
        link.hash
        for link in _links(collector, pin.name)
        if link.hash_name == SHA256 and link.hash and _is_of(link.filename, pin)
    }
    if not digests:
        raise SystemExit(f"no file of {pin.name} {pin.version} has a digest")
    return pin._replace(digests=tuple(sorted(digests)))


def _links(collector: LinkCollector, name: str) -> Iterator[Link]:
    sources = collector.collect_sources(name, candidates_from_page=lambda _: ())
    for source in sources.index_urls:
        page = None if source is None or source.link is None else source.link
        response = None if page is None else collector.fetch_response(page)
        if response is not None:
            yield from parse_links(response)


def _is_of(file: str, pin: Pin) -> bool:
    try:
        name, version = parse_wheel_filename(file)[:2]
    except InvalidWheelFilename:
        try:
            name, version = parse_sdist_filename(file)
        except InvalidSdistFilename:
            return False
    return name == canonicalize_name(pin.name) and version == Version(pin.version)


def main() -> None:
    """Writes the lock anew, with the same versions."""
    command = IndexCommand("index", "")
    options, _ = command.parse_args([])
    with command.main_context():
        session = command.get_default_session(options)
        finder = command._build_package_finder(options, session)
        pins = [with_digests(finder._link_collector, pin) for pin in read_lock(LOCK).values()]
    header = "".join(line for line in LOCK.open() if line.startswith("#"))
    LOCK.write_text(header + "".join(pin.text for pin in pins))
    sys.stdout.write(f"{len(pins)} packages, {sum(len(p.digests) for p in pins)} digests\n")


if __name__ == "__main__":
    main()
