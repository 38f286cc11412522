"""Two real projects with planted bugs, from Debian's source packages: cJSON and lz4.

The sources are fetched once and checked. Each history has the same shape: a commit brings a bug,
one renames the function that fails, one fixes only a part, one fixes it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.fuzzing.real.sources import Source

CJSON_TARGET = """\
#include <stdlib.h>
#include <string.h>
#include "cJSON.h"
/* With its length given, this version reads beyond the end: a bug that nobody planted. */
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  char *text = calloc(size + 1, 1);
  memcpy(text, data, size);
  cJSON_Delete(cJSON_Parse(text));
  free(text);
  return 0;
}
"""
LZ4_TARGET = """\
#include <stdio.h>
#include <stdlib.h>
#include "lz4.h"
int main(int count, char **names) {
  static char data[65536];
  FILE *file = count > 1 ? fopen(names[1], "rb") : NULL;
  if (file == NULL) return 2;
  size_t size = fread(data, 1, sizeof data, file);
  char *into = malloc(256);
  LZ4_decompress_safe(data, into, (int)size, 256);
  free(into);
  return fclose(file);
}
"""
Change = Callable[[str], str]


@dataclass(frozen=True)
class Project:
    """What is fuzzed, and how each commit changes one file.

    `seeds` are its tests; `telling` are tests that show the bug without any fuzzing, of which
    the incomplete fix mends the first.
    """

    source: Source
    patched: str
    target: str
    engine: str
    production: str
    coverage: str
    changes: dict[str, Change]
    seeds: dict[str, bytes]
    telling: dict[str, bytes]
    kind: str
    function: str
    words: str


def replaced(old: str, new: str) -> Change:
    """Returns a change of sources; it fails if they are not the ones that we know."""

    def change(text: str) -> str:
        assert text.count(old) >= 1, f"the sources have no {old!r}"
        return text.replace(old, new)

    return change


def lz4_block(literals: int, size: int) -> bytes:
    """A block that unpacks to some literals and then a run, this many bytes in all."""
    run = size - literals - 5 - 4 - 15
    token = bytes([literals << 4 | 15]) + b"abcdefghijklmn"[:literals]
    return token + b"\x01\x00" + b"\xff" * (run // 255) + bytes([run % 255]) + b"\x50aaaaa"


NESTED = "    input_buffer->depth++;\n\n    if (buffer_at_offset(input_buffer)[0] != '[')"
CJSON = Project(
    source=Source(
        name="cjson",
        package="libcjson-dev",
        archive="cjson_1.7.15.orig.tar.gz",
        sha256="5308fd4bd90cef7aa060558514de6a1a4a0819974a26e6ed13973c5f624c24b2",
        files={"cJSON-1.7.15/cJSON.c": "cJSON.c", "cJSON-1.7.15/cJSON.h": "cJSON.h"},
    ),
    patched="cJSON.c",
    target=CJSON_TARGET,
    engine="{name: libfuzzer, binary: target}",
    production="clang -g -O1 -fno-inline -fsanitize=fuzzer,address",
    coverage="clang -O0 -fsanitize=fuzzer -fprofile-instr-generate -fcoverage-mapping",
    changes={
        "bug": replaced(NESTED, "    if (input_buffer->depth >= 3) abort();\n" + NESTED),
        "renamed": replaced("parse_array", "read_array"),
        "partial": replaced("depth >= 3) abort", "depth >= 4) abort"),
        "fixed": replaced("    if (input_buffer->depth >= 4) abort();\n", ""),
    },
    seeds={"a": b'{"a":[true,1.5,"x"]}', "b": b"[[1],[null]]"},
    telling={"deep4": b"[[[[1]]]]", "deep5": b"[[[[[1]]]]]"},
    kind="crash",
    function="parse_",
    words="deadly signal",
)
LZ4 = Project(
    source=Source(
        name="lz4",
        package="liblz4-dev",
        archive="lz4_1.9.4.orig.tar.gz",
        sha256="0b0e3aa07c8c063ddf40b082bdf7e37a1562bda40a0ff5272957f3e987e0e54b",
        files={"lz4-1.9.4/lib/lz4.c": "lz4.c", "lz4-1.9.4/lib/lz4.h": "lz4.h"},
    ),
    patched="lz4.c",
    target=LZ4_TARGET,
    engine="{name: command, argv: ['{binaries}/target', '{input}']}",
    production="clang -g -O1 -fsanitize=address",
    coverage="clang -O0 -fprofile-instr-generate -fcoverage-mapping",
    changes={
        "bug": replaced(
            "    return LZ4_decompress_generic(source, dest, compressedSize, maxDecompressedSize,\n"
            "                                  decode_full_block, noDict,",
            "    if (compressedSize > 0) maxDecompressedSize += 64;\n"
            "    return LZ4_decompress_generic(source, dest, compressedSize, maxDecompressedSize,\n"
            "                                  decode_full_block, noDict,",
        ),
        "renamed": replaced("LZ4_decompress_generic", "LZ4_unpack_generic"),
        "partial": replaced("if (compressedSize > 0) max", "if (compressedSize > 16) max"),
        "fixed": replaced("    if (compressedSize > 16) maxDecompressedSize += 64;\n", ""),
    },
    seeds={"a": lz4_block(1, 100), "b": lz4_block(14, 200)},
    telling={"few": lz4_block(1, 300), "many": lz4_block(14, 300)},
    kind="sanitizer",
    function="LZ4_decompress",
    words="heap-buffer-overflow",
)
PROJECTS: Final = (CJSON, LZ4)
