"""The long form of the tests: atheris looks for inputs that take new paths through a parser.

    python -m tests.parsers [--seconds 60] [NAME ...]

Each parser runs in a process of its own. Inputs that lead to new code are kept in
`.fuzz-corpus/PARSER`, those that break a property in `.fuzz-corpus/broken`, and the exit code says
whether there were any.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

CORPUS: Final = Path(".fuzz-corpus")
BROKEN: Final = CORPUS / "broken"
INSIDE: Final = "--inside"  # the process of one parser, which imports all of it under atheris
SLOWEST_SECONDS: Final = 20  # for one input, by the clock of the wall
MEMORY_MIB: Final = 2_048


def main() -> int:
    """Runs the parsers in turn; returns 1 if one of them broke a property."""
    if sys.argv[1:2] == [INSIDE]:
        fuzz(sys.argv[3], int(sys.argv[2]))
        return 0
    from tests.parsers.catalog import BY_NAME

    options = argparse.ArgumentParser(prog="python -m tests.parsers")
    options.add_argument("--seconds", type=int, default=60, help="for each parser")
    options.add_argument("names", nargs="*", metavar="NAME", help="; ".join(BY_NAME))
    given = options.parse_args()
    broken = []
    for name in given.names or BY_NAME:
        words = [sys.executable, "-m", "tests.parsers", INSIDE, str(given.seconds), name]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("INFO")]
        said = next((line for line in reversed(lines) if re.match(r"#[0-9]", line)), "")
        say(f"{name}: {'ok' if done.returncode == 0 else 'BROKEN'} {said}")
        if done.returncode:
            broken.append(name)
            say("\n".join([*done.stdout.splitlines(), *lines][-80:]))
    say(f"broken: {', '.join(broken) or 'none'}")
    return bool(broken)


def say(text: str) -> None:
    """Prints a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def fuzz(name: str, seconds: int) -> None:
    """Runs one parser; ends the process."""
    import atheris

    with atheris.instrument_imports(include=["windlass", "tests.parsers", "cronsim"]):
        from tests.parsers.catalog import BY_NAME
        from tests.parsers.parser import try_input

    parser = BY_NAME[name]
    folder = CORPUS / name.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    BROKEN.mkdir(exist_ok=True)
    for place, seed in enumerate(parser.seeds):
        (folder / f"seed-{place}").write_bytes(seed)
    flags = [
        f"-max_total_time={seconds}", f"-max_len={min(parser.most, 8_192)}", "-print_final_stats=0",
        f"-timeout={SLOWEST_SECONDS}", f"-rss_limit_mb={MEMORY_MIB}",
        f"-artifact_prefix={BROKEN / name.replace(' ', '-')}-",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *flags, str(folder)], lambda data: try_input(parser, data))
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
