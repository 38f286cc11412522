"""What open pages cost an idle server: `make bench-live`.

Starts a real server, opens streams as that many pages do, and measures the server's processor time
while nothing happens. The bound is a tenth of a core for 200 pages.
"""

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

TOPICS = "show=jobs&show=workers&show=queues"
STARTED = re.compile(r"windlass is up at (\S+)")


def cpu_seconds(pid: int) -> float:
    """Returns the processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def hold(address: str, token: str, pages: int, seconds: float, pid: int) -> float:
    """Returns the share of a core that the server takes while this many pages are open."""
    headers = {"Authorization": f"Bearer {token}"}
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(headers=headers, connector=connector, timeout=timeout) as http:
        opened = [await http.get(f"{address}/api/v1/live?{TOPICS}") for _ in range(pages)]
        for reply in opened:
            assert reply.status == 200
            await reply.content.readline()
        await asyncio.sleep(2)
        began, before = time.monotonic(), cpu_seconds(pid)
        await asyncio.sleep(seconds)
        share = (cpu_seconds(pid) - before) / (time.monotonic() - began)
        for reply in opened:
            reply.close()
    return share


def main() -> None:
    """Measures without a page and with `--pages`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        command = [sys.executable, "-m", "windlass", "up", "--port", "0", "--workers", "0"]
        command += ["--data", data]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            found = next(filter(None, map(STARTED.search, process.stdout)))
            token = (Path(data) / "admin-token").read_text().strip()
            for pages in (0, asked.pages):
                share = asyncio.run(hold(found[1], token, pages, asked.seconds, process.pid))
                print(f"{pages:4} open pages: {share:6.1%} of a core")
            print("bound: 10.0 % of a core for 200 pages")
        finally:
            process.terminate()
            process.wait(timeout=30)


if __name__ == "__main__":
    main()
