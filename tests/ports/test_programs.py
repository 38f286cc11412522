"""Programs that loops of several threads start at once."""

import subprocess
import sys

# Something to do before each fork, as other libraries have, gives other threads their turn.
LOOPS = """
import asyncio, os, threading, time
import uvloop
from windlass.ports.programs import start_program

os.register_at_fork(before=lambda: time.sleep(0.001))
ended = []


async def start_many():
    for _ in range(25):
        process = await start_program("cat", stdin=asyncio.subprocess.DEVNULL,
                                      stdout=asyncio.subprocess.PIPE)
        await process.communicate()
    ended.append(True)


threads = [threading.Thread(target=uvloop.run, args=(start_many(),)) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(ended))
"""


def test_loops_of_several_threads_start_programs_at_once() -> None:
    words = [sys.executable, "-c", LOOPS]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout, done.stderr) == ("3\n", "")
