"""A process that queues commits in a directory: PATH NAME COUNT [MAX_FILE].

It prints how many it queued, or the code of the error that stopped it.
"""

import asyncio
import resource
import sys
from functools import partial
from pathlib import Path

from windlass.domain.values.errors import Conflict, StoreUnavailable
from windlass_fuzz.buckets.directory import DirectoryBucket
from windlass_fuzz.state import rules
from windlass_fuzz.state.documents import BuildQueue
from windlass_fuzz.state.open import real_runtime
from windlass_fuzz.state.pipeline import Pipeline


def _queue(commit: str, queue: BuildQueue) -> BuildQueue:
    return rules.enqueue_new(queue, [commit])


async def main() -> str:
    path, name, count, *limit = sys.argv[1:]
    pipeline = Pipeline(DirectoryBucket(Path(path)), "toy", real_runtime(), name)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit[0]), int(limit[0])))
    queued = 0
    while queued < int(count):
        commit = f"{name}-{queued}"
        try:
            await pipeline.queue.update(partial(_queue, commit))
            queued += 1
        except Conflict as spent:
            if spent.code != "contended":
                raise
        except StoreUnavailable as error:
            return error.code
    return str(queued)


if __name__ == "__main__":
    sys.stdout.write(asyncio.run(main()))
