"""The page writes durations and sizes as the command line does."""

import json
import subprocess
from pathlib import Path

import hatch_build
from windlass.domain.values.quantities import readable_duration, readable_size

DURATIONS = [
    *(0, 1, 340, 999, 1_000, 1_049, 1_050, 1_450, 9_949, 9_950, 9_951, 59_499, 59_500, 60_700),
    *(200_000, 3_599_499, 3_599_500, 7_500_000, 86_369_999, 86_370_000, 360_000_000),
]  # fmt: skip
SIZES = [
    *(0, 1, 1_023, 1_024, 1_025, 102_348, 102_399, 1_048_063, 1_048_064, 1_048_575, 1_048_576),
    *(11_639_194, 2**30 - 1, 8 * 2**40, 5 * 2**50),
]
# TypeScript itself takes the types away, since not every node can.
SHOW = """
const ts = require("typescript"), fs = require("node:fs");
const code = ts.transpileModule(fs.readFileSync("src/ui/format.ts", "utf8"), {
  compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 },
}).outputText;
const page = {};
new Function("exports", code)(page);
const asked = JSON.parse(process.argv[1]);
const durations = asked.durations.map((ms) => page.duration(ms / 1000));
console.log(JSON.stringify([durations, asked.sizes.map((size) => page.bytes(size))]));
"""


def shown_by_the_page(folder: Path = hatch_build.SOURCES) -> list[list[str]]:
    asked = json.dumps({"durations": DURATIONS, "sizes": SIZES})
    command = [str(hatch_build.find_node()), "-e", SHOW, asked]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    found: list[list[str]] = json.loads(done.stdout)
    return found


def test_durations_and_sizes_read_the_same_on_the_page_and_in_a_terminal() -> None:
    durations, sizes = shown_by_the_page()
    assert dict(zip(DURATIONS, durations, strict=True)) == {
        n: readable_duration(n) for n in DURATIONS
    }
    assert dict(zip(SIZES, sizes, strict=True)) == {n: readable_size(n) for n in SIZES}
