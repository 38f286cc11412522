"""Seeds from outside: used within limits, kept until they change, hostile ones refused."""

import io
import struct
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.fuzzing.support.scripted_solver import World
from tests.support.running import run
from tests.support.s3 import S3Server
from windlass.clock import RealChance, RealClock
from windlass.domain.values.errors import InvalidInput
from windlass_fuzz.buckets.bucket import Bucket
from windlass_fuzz.buckets.directory import DirectoryBucket
from windlass_fuzz.config.seed_settings import SeedSettings, check_seed_settings
from windlass_fuzz.engines.afl import AflEngine
from windlass_fuzz.engines.engine import Campaign, Target
from windlass_fuzz.engines.libfuzzer import LibFuzzerEngine
from windlass_fuzz.seeds.dictionaries import format_dictionary, parse_dictionary
from windlass_fuzz.seeds.importer import SeedImporter, Seeds
from windlass_fuzz.seeds.limits import SeedsRefused
from windlass_fuzz.state.open import open_bucket

MIB = 1024 * 1024


def zipped(files: dict[str, bytes], mode: int = 0) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = mode << 16
            archive.writestr(entry, data)
    return packed.getvalue()


def fetch(folder: Path, bucket: Bucket | None = None, **settings: Any) -> Seeds:
    sources = folder / "sources"
    sources.mkdir(exist_ok=True)
    importer = SeedImporter(
        SeedSettings(**settings), folder / "work", sources, sources, 256 * MIB, RealClock(),
        RealChance(),
    )  # fmt: skip
    if bucket is not None:
        importer.bucket_of = lambda _: bucket
    return run(importer.fetch())


def contents(seeds: Seeds) -> list[bytes]:
    return sorted(path.read_bytes() for path in seeds.inputs)


def test_folders_and_archives_are_used(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "one").write_bytes(b"1")
    (outside / "same").write_bytes(b"1")
    (outside / "large").write_bytes(b"x" * 100)
    (outside / "link").symlink_to("/etc/passwd")
    (tmp_path / "seed_corpus.zip").write_bytes(zipped({"a/two": b"2", "three": b"3"}))
    places = (str(outside), str(tmp_path / "seed_corpus.zip"), str(tmp_path / "missing"))
    found = fetch(tmp_path, corpora=places, largest="99")
    assert contents(found) == [b"1", b"2", b"3"], "each content once, no link, nothing too large"
    assert len(found.problems) == 1
    assert "missing" in found.problems[0]


class CountingBucket(DirectoryBucket):
    downloads = 0

    async def download(self, key: str, path: Path) -> bool:
        self.downloads += 1
        return await super().download(key, path)


def test_what_a_bucket_holds_is_fetched_once(tmp_path: Path) -> None:
    bucket = CountingBucket(tmp_path / "bucket")
    run(bucket.put("one", b"1"))
    run(bucket.put("deep/two", b"2"))
    for _ in range(2):
        assert contents(fetch(tmp_path, bucket, corpora=("s3://corpora/x",))) == [b"1", b"2"]
    assert bucket.downloads == 2
    run(bucket.put("three", b"3"))
    assert len(fetch(tmp_path, bucket, corpora=("s3://corpora/x",)).inputs) == 3
    run(bucket.put("y.zip", zipped({"four": b"4"})))
    before = bucket.downloads
    for _ in range(2):
        assert contents(fetch(tmp_path, bucket, corpora=("s3://corpora/y.zip",))) == [b"4"]
    assert bucket.downloads == before + 1
    kept = [path for path in (tmp_path / "work" / "seeds").iterdir() if path.is_dir()]
    assert len(kept) == 1, "what is no longer used is deleted"


def lying_about_size(size: int) -> bytes:
    """Returns an archive whose entries claim to be small."""
    content = bytearray(zipped({"bomb": b"0" * size}))
    place = content.rfind(b"PK\x01\x02")
    struct.pack_into("<L", content, place + 24, 10)
    return bytes(content)


def with_directory_of(size: int) -> bytes:
    content = bytearray(zipped({"a": b"1"}))
    struct.pack_into("<L", content, content.rfind(b"PK\x05\x06") + 12, size)
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (zipped({"../../up": b"1"}), "leads out"),
        (zipped({"/etc/cron.d/x": b"1"}), "leads out"),
        (zipped({"..\\up": b"1"}), "leads out"),
        (zipped({"C:/up": b"1"}), "leads out"),
        (zipped({"link": b"/etc/passwd"}, mode=0o120777), "link"),
        (zipped({str(n): bytes([n]) for n in range(20)}), "more than 10 inputs"),
        (zipped({str(n): bytes([n]) * 900 for n in range(9)}), "bytes"),
        (lying_about_size(5_000), "cannot read"),
        (with_directory_of(2**31), "room for"),
        (with_directory_of(0xFFFFFFFF), "room for"),
        (b"not an archive", "not a .zip"),
        (zipped({"a": b"1" * 50})[:-30], "not a .zip"),
        (b"", "not a .zip"),
    ],
    ids=range(13),
)
def test_hostile_archives_are_refused(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "hostile.zip").write_bytes(content)
    before = {path for path in tmp_path.rglob("*") if "work" not in path.parts}
    found = fetch(
        tmp_path, corpora=(str(tmp_path / "hostile.zip"),), inputs=10, largest="1KiB", size="4KiB"
    )
    assert found.inputs == []
    assert why in found.problems[0]
    after = {path for path in tmp_path.rglob("*") if "work" not in path.parts}
    assert after - before <= {tmp_path / "sources"}
    assert list((tmp_path / "work" / "seeds").iterdir()) == [], "half of it is not kept"


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    (tmp_path / "bomb.zip").write_bytes(zipped({"bomb": b"0" * (20 * MIB), "fine": b"1"}))
    assert (tmp_path / "bomb.zip").stat().st_size < MIB
    tracemalloc.start()
    try:
        found = fetch(tmp_path, corpora=(str(tmp_path / "bomb.zip"),), largest="1KiB")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert contents(found) == [b"1"]
    assert most < 8 * MIB


def test_a_path_of_the_repository_stays_in_it(tmp_path: Path) -> None:
    (tmp_path / "sources").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_bytes(b"secret")
    (tmp_path / "sources" / "corpus").symlink_to(tmp_path / "secret")
    found = fetch(tmp_path, corpora=("corpus", "../secret"))
    assert found.inputs == []
    assert all("leads out of the repository" in one for one in found.problems)


def test_a_program_makes_seeds(tmp_path: Path) -> None:
    script = 'echo "$2" > "$1/made"; ln -s /etc/passwd "$1/link"'
    command = ("sh", "-c", script, "sh", "{output}", "{seed}")
    found = fetch(tmp_path, generate=command)
    assert [int(data) >= 0 for data in contents(found)] == [True]
    broken = fetch(tmp_path, generate=("sh", "-c", "echo no licence; exit 3", "{output}"))
    assert "no licence" in broken.problems[0]
    slow = fetch(tmp_path, generate=("sh", "-c", "sleep 60", "{output}"), generate_timeout="200ms")
    assert "was stopped" in slow.problems[0]


DICTIONARY = rb"""
# words of the language
"assert"
keyword_let="let"
deep@2="\x00\xff\"\\"
"assert"   # twice
"""


def test_dictionaries_are_read_and_merged(tmp_path: Path) -> None:
    words = parse_dictionary(DICTIONARY)
    assert words == [b"assert", b"let", b'\x00\xff"\\']
    assert parse_dictionary(format_dictionary(words)) == words
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "a.dict").write_bytes(DICTIONARY)
    (tmp_path / "b.dict").write_bytes(b'"more"\n')
    (tmp_path / "bad.dict").write_bytes(b"no quotes\n")
    places = ("a.dict", str(tmp_path / "b.dict"), str(tmp_path / "bad.dict"))
    found = fetch(tmp_path, dictionaries=places)
    assert found.dictionary is not None
    assert parse_dictionary(found.dictionary.read_bytes()) == [*words, b"more"]
    assert "line 1" in found.problems[0]


@pytest.mark.parametrize(
    "content", [b'"open', b'x="\\q"', b'"a" "b"', b'"' * 2_000_000, b'\n"a"\nword'], ids=range(5)
)
def test_what_is_no_dictionary_is_refused(content: bytes) -> None:
    with pytest.raises(SeedsRefused):
        parse_dictionary(content)


def test_engines_get_the_dictionary(tmp_path: Path) -> None:
    (tmp_path / "target").touch()
    campaign = Campaign([], tmp_path, tmp_path, 1_000, 1, dictionary=tmp_path / "words")

    def target(**options: Any) -> Target:
        return Target(tmp_path, options, tmp_path, RealClock(), RealChance())

    fuzzer = LibFuzzerEngine(target(binary="target", dictionary="own"))
    assert fuzzer._flags(campaign.dictionary) == [f"-dict={tmp_path / 'words'}"]
    assert fuzzer._flags(None) == [f"-dict={tmp_path / 'own'}"]
    argv = AflEngine(target(argv=["./x"]))._fuzz_argv(tmp_path, tmp_path, "a", "-M", campaign)
    assert argv[argv.index("-x") + 1] == str(tmp_path / "words")


@pytest.mark.parametrize(
    "given",
    [
        {"corpora": ("http://example.com/x.zip",)},
        {"corpora": ("https://user:password@example.com/x.zip",)},
        {"dictionaries": ("https://",)},
        {"inputs": 0},
        {"size": "0"},
        {"generate": ("./make",)},
        {"dictionaries": ("",)},
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="seeds"):
        check_seed_settings(SeedSettings(**given))


ONLY_OUTSIDE = """#!/bin/sh
if grep -q trigger "$1"; then echo "bug: from outside" >&2; kill -ABRT $$; fi
"""


def test_a_run_starts_from_seeds_from_outside(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "one").write_text("trigger\n")
    more = f"seeds: {{corpora: ['{outside}', /missing/x.zip], dictionaries: [words.dict]}}"
    world = World(tmp_path, more=more)

    async def work() -> None:
        good = world.commit("good", solver_sh=ONLY_OUTSIDE, **{"words.dict": '"word"\n'})
        await world.build_and_schedule(good)
        said: list[str] = []
        report = await world.fuzz(good, until_bug=True, budget_ms=60_000, notify=said.append)
        assert len(report.findings) == 1
        assert "1 from outside" in report.chosen_by
        assert "/missing/x.zip" in report.seed_problems[0]
        assert any("/missing/x.zip" in line for line in said)

    run(work())


def test_corpora_and_dictionaries_come_from_a_real_s3_server(
    tmp_path: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    bucket = open_bucket("s3://seed-corpora/deep")
    for key, body in (
        ("corpus/one", b"1"),
        ("corpus/more/two", b"2"),
        ("seeds.zip", zipped({"three": b"3"})),
        ("words.dict", b'"let"\n'),
    ):
        run(bucket.put(key, body))
    found = fetch(
        tmp_path,
        corpora=("s3://seed-corpora/deep/corpus", "s3://seed-corpora/deep/seeds.zip"),
        dictionaries=("s3://seed-corpora/deep/words.dict",),
    )
    assert (contents(found), found.problems) == ([b"1", b"2", b"3"], [])
    assert found.dictionary is not None
    assert parse_dictionary(found.dictionary.read_bytes()) == [b"let"]
    missing = fetch(tmp_path, corpora=("s3://seed-corpora/nothing", "s3://no-such-bucket-here/x"))
    assert len(missing.problems) == 2
