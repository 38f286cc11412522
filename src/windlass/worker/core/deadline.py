"""Computes until when an agent's jobs may run: always less than the server assumes."""

from collections.abc import Callable
from typing import NamedTuple

from windlass.domain.config import LEASE_MARGIN_MS

EARLY_S = 0.1
UNANSWERED = "no server answered"


class Rules(NamedTuple):
    """The rules the server gave when the worker enrolled."""

    heartbeat_ms: int
    lease_ms: int
    grace_ms: int


class Deadline:
    """Counts from the sending of the last sync that was answered.

    The server may have recorded that sync up to a third of a heartbeat late, and processes may use
    their whole grace to end: this deadline ends that much earlier than the server's lease. `reason`
    says why it was not extended, for the attempts that it ends.
    """

    def __init__(self, rules: Rules, uptime: Callable[[], float]) -> None:
        self._uptime = uptime
        lasts = rules.lease_ms - rules.heartbeat_ms // 3 - LEASE_MARGIN_MS
        self._hard_s = lasts / 1000
        self._soft_s = (lasts - rules.grace_ms) / 1000
        self._step_s = rules.heartbeat_ms / 10_000
        self._told = 0.0
        self.soft = self.hard = 0.0
        self.unanswered = UNANSWERED  # why syncs are not answered at present

    def extend(self, sent_at: float) -> bool:
        """Counts from an answered sync; returns whether the keeper must be told."""
        self.soft = max(self.soft, sent_at + self._soft_s)
        self.hard = max(self.hard, sent_at + self._hard_s)
        if self.soft - self._told < self._step_s:
            return False
        self._told = self.soft
        return True

    def has_passed(self) -> bool:
        """Returns whether the keeper may have ended what ran."""
        return self.left_s <= 0

    @property
    def left_s(self) -> float:
        """Returns how long jobs may still run, slightly less than the keeper allows."""
        return self.soft - EARLY_S - self._uptime()
