"""Programs that end before they have read what they are given, on the loop that servers run on."""

import asyncio

import uvloop

from windlass.providers.command import run


def test_a_program_may_end_without_reading_what_it_is_given() -> None:
    async def scene() -> None:
        for _ in range(5):
            ends = await asyncio.gather(
                *(run(["true"], given="x" * 200_000) for _ in range(20)),
                *(run(["echo", "a"]) for _ in range(20)),
                *(run(["cat"], given="b") for _ in range(5)),
            )
            assert ends == [""] * 20 + ["a\n"] * 20 + ["b"] * 5

    uvloop.run(scene())
