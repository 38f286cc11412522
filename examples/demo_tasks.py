"""The functions that the demo runs as jobs."""

import windlass


@windlass.task
def primes_below(limit: int) -> int:
    """How many primes there are below `limit`."""
    sieve = bytearray([1]) * limit
    sieve[:2] = b"\0\0"
    for number in range(2, int(limit**0.5) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, limit, number)))
        windlass.current().progress(round(number / limit**0.5, 2))
    return sum(sieve)


@windlass.task
async def greet(name: str) -> str:
    """A coroutine is a task as well."""
    return f"hello, {name}"
