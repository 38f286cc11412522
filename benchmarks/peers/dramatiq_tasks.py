"""What dramatiq's workers import: a no-op actor on the Redis that WINDLASS_PEER_URL names.

Without results, and only with the middleware that a plain actor needs.
"""

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import Retries

from benchmarks.peers.declared import URL

broker = RedisBroker(url=os.environ[URL], middleware=[Retries()])  # type: ignore[no-untyped-call]
dramatiq.set_broker(broker)


@dramatiq.actor
def noop(n: int) -> None:
    """Nothing: only the queue is measured."""
