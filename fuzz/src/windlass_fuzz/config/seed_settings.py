"""The part of the solver file about seeds from outside the repository."""

import msgspec

from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import parse_duration_ms, parse_size
from windlass.domain.webhooks import check_url


class SeedSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seeds besides the tests.

    `corpora` are folders, archives (.zip, .tar, .tar.gz, .tgz, .tar.zst), s3:// addresses of
    either, or https:// addresses of archives; relative paths are in the repository. `dictionaries`
    are files in AFL's format. `generate` is a program that writes inputs to the folder `{output}`
    from the number `{seed}`, in at most `generate_timeout`. At most `inputs` inputs are used, of at
    most `largest` each and `size` in total.
    """

    corpora: tuple[str, ...] = ()
    dictionaries: tuple[str, ...] = ()
    generate: tuple[str, ...] = ()
    generate_timeout: str = "1m"
    inputs: int = 10_000
    largest: str = "1MiB"
    size: str = "256MiB"

    @property
    def timeout_ms(self) -> int:
        return parse_duration_ms(self.generate_timeout, "seeds.generate_timeout")

    @property
    def largest_bytes(self) -> int:
        return parse_size(self.largest, "seeds.largest")

    @property
    def size_bytes(self) -> int:
        return parse_size(self.size, "seeds.size")

    @property
    def wanted(self) -> bool:
        """Returns whether there is anything to fetch or generate."""
        return bool(self.corpora or self.dictionaries or self.generate)


def check_seed_settings(seeds: SeedSettings) -> None:
    """Raises if a value makes no sense; the message names the key."""
    for name, number in (
        ("inputs", seeds.inputs),
        ("largest", seeds.largest_bytes),
        ("size", seeds.size_bytes),
        ("generate_timeout", seeds.timeout_ms),
    ):
        if number < 1:
            raise InvalidInput(f"seeds.{name}", "more than 0", number)
    for name, places in (("corpora", seeds.corpora), ("dictionaries", seeds.dictionaries)):
        for place in places:
            if place.startswith("https://"):
                check_url(place, f"seeds.{name}")
            elif not place or ("://" in place and not place.startswith("s3://")):
                raise InvalidInput(f"seeds.{name}", "a path, s3://bucket/path or https://…", place)
    if seeds.generate and not any("{output}" in word for word in seeds.generate):
        raise InvalidInput("seeds.generate", "a command with {output}", list(seeds.generate))
