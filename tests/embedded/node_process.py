"""An embedded client in a process of its own: FILE WORKERS, and then commands by lines.

`submit N` submits N jobs one by one and answers with their ids, `many N` all at once,
`wait ID` answers with the state of a job that has ended, `leads` whether it holds the file,
`close` closes the client and answers.
"""

import json
import sys

import windlass
from tests.embedded.functions import nothing
from tests.embedded.holding_files import leads
from windlass.domain.config import Config

# Nothing but the channel between the processes can wake anybody in time.
SLOW = Config(scheduling_interval_ms=3_600_000)


def main() -> None:
    path, workers = sys.argv[1:]
    client = windlass.Client.embedded(path, workers=int(workers), config=SLOW)
    say("ready")
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "submit":
            say([client.submit(nothing).id for _ in range(int(rest[0]))])
        elif word == "many":
            jobs = client.submit_many([nothing.job() for _ in range(int(rest[0]))])
            say([job.id for job in jobs])
        elif word == "wait":
            say(client.job(int(rest[0])).wait(timeout=60).state)
        elif word == "leads":
            say(leads(path))
        elif word == "close":
            client.close()
            say("closed")


def say(what: object) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
