"""Runs tests many times beside busy loops and counts what failed: `make test-luck`."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.support.second_try import recorded

BUSY_LOOPS = 4


def main(runs: int, options: list[str]) -> int:
    """Prints each test that failed, with the number of runs in which it did."""
    failures: Counter[str] = Counter()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY_LOOPS)]
    try:
        for number in range(1, runs + 1):
            done = subprocess.run([sys.executable, "-m", "pytest", "-q", *options], check=False)
            failed = recorded(Path.cwd())
            failures.update(failed or (["(the whole run)"] if done.returncode else []))
            print(f"run {number} of {runs}: {len(failed)} failed", flush=True)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    for test, count in failures.most_common():
        print(f"failed in {count} of {runs} runs: {test}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
