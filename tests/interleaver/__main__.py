"""The long form, and the repetition of one run: `python -m tests.interleaver --help`."""

import argparse
import asyncio
import sys
from collections.abc import Sequence

from tests.interleaver import matrix
from tests.interleaver.explore import Explorer, Scene
from tests.interleaver.pairs import RARE, SCENES
from tests.interleaver.schedules import parse
from tests.interleaver.stage import Stage
from tests.support.postgres import start_postgres


def main() -> int:
    """Play everything, or what was asked for; 1 if something went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.interleaver", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="drawn schedules for each pair")
    parser.add_argument("--scene", help="only scenes whose name contains this")
    parser.add_argument("--schedule", help='repeat one run: "seed:17" or "a4 b2 a b"')
    asked = parser.parse_args()
    scenes = [
        s
        for s in (*SCENES, *RARE, *matrix.scenes())
        if asked.scene is None or asked.scene in s.name
    ]
    server = start_postgres(durable=False)
    try:
        return asyncio.run(_play(server.create_database(), scenes, asked))
    finally:
        server.stop()


async def _play(dsn: str, scenes: Sequence[Scene], asked: argparse.Namespace) -> int:
    stage = Stage(dsn)
    await stage.open()
    explorer = Explorer(stage)
    failed = 0
    for scene in scenes:
        try:
            if asked.schedule:
                done = await explorer.repeat(scene, parse(asked.schedule))
                _say(" ".join((scene.name, *done.trace)))
            elif scene in (*SCENES, *RARE):
                await explorer.explore(scene, range(asked.seeds), thorough=True)
            else:
                await explorer.draw(scene, range(asked.seeds))
        except AssertionError as problem:
            failed += 1
            _say(str(problem))
    _say(f"{explorer.runs} runs of {len(scenes)} scenes, {failed} of them failed")
    await stage.close()
    return 1 if failed else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
