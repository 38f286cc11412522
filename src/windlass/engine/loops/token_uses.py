"""The loop that records when tokens were used, once a minute for all of them."""

from typing import Final

from windlass.engine.access import Access

MINUTE_MS: Final = 60_000


class TokenUses:
    """Writes the last use of tokens, so that no request needs to."""

    name = "token_uses"
    interval_ms = MINUTE_MS

    def __init__(self, access: Access) -> None:
        self._access = access

    async def run_once(self, now: int) -> None:
        """Runs one round."""
        del now
        await self._access.note_uses()
