"""A program that used S3 ends as it should, though the client has threads of its own."""

import os
import subprocess
import sys

from tests.support.s3 import S3Server

PROGRAMS = 15  # of which some six would be aborted
PROGRAM = """
import asyncio
from windlass.blobs.s3 import S3Blobs

async def main():
    blobs = S3Blobs("answers")
    await asyncio.gather(*(blobs.put(f"k{n}", bytes(1000)) for n in range(60)))
    found = await asyncio.gather(*(blobs.get(f"k{n}") for n in range(60)))
    assert None not in found

asyncio.run(main())
"""


def test_no_program_is_aborted_at_its_end(s3_server: S3Server) -> None:
    env = {**os.environ, **s3_server.environment()}
    codes = [
        subprocess.run([sys.executable, "-c", PROGRAM], env=env, check=False).returncode
        for _ in range(PROGRAMS)
    ]
    assert codes == [0] * PROGRAMS
