"""A program that forks after its client was used, as web servers do that load first."""

import os
import signal
import sys

import windlass

client = windlass.Client()


def submit() -> int:
    return client.submit("shell", argv=["true"]).wait(timeout=60).id


def main() -> None:
    print(submit())
    sys.stdout.flush()
    children = []
    for closes in (False, False, True):
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # ends a child that hangs
            os.write(1, f"{submit()}\n".encode())
            if closes:
                client.close()
            sys.exit()  # as a child that ends in order: it closes what is its own
        children.append(child)
    if any(os.waitpid(child, 0)[1] for child in children):
        sys.exit(1)
    print(submit())


if __name__ == "__main__":
    main()
