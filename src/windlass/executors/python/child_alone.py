"""A process that runs one Python function for one job: `… .child_alone`.

A job that is isolated, or has limits, shares its process with no other. The connection to the
executor is its standard input, so that it needs no file of the agent's.
"""

import os
import socket
from array import array
from typing import Final

from windlass.executors.python.child import Server, take_connection, write_lines_out
from windlass.executors.python.messages import (
    CURRENT,
    HELD,
    PACKET_LIMIT,
    STOPPED,
    Call,
    decode_orders,
)
from windlass.executors.python.snapshot import use_snapshot
from windlass.executors.python.stacks import answer_stacks

PAGE_WORDS: Final = 1 + max(CURRENT, STOPPED, HELD)


class LoneServer(Server):
    """Runs one call and exits; its output goes straight to the job's log."""

    alone = True

    def serve(self) -> None:
        """Takes the call, runs it and reports how it ended."""
        self.listen()
        call = self._receive()
        if call is None:
            return
        self._page[CURRENT] = call.seq
        report = self._run(call)
        if os.getpid() == self._pid:
            self.flush_streams()
            self._send(report)

    def _receive(self) -> Call | None:
        while data := self._connection.recv(PACKET_LIMIT):
            for found in self._frames.feed(data):
                for order in decode_orders(found):
                    if isinstance(order, Call):
                        return order
        return None

    def canceled(self, seq: int) -> bool:
        """Returns whether it was told to stop: there is no other call."""
        return seq == self._page[CURRENT] and self._ending


def main() -> None:
    """Serves the connection that is its standard input."""
    connection = take_connection()
    _, (side, *asking), _, _ = socket.recv_fds(connection, 1, 2)
    for fd in (side, *asking):
        os.set_inheritable(fd, False)
    if asking:
        use_snapshot(socket.socket(fileno=asking[0]))
    write_lines_out()
    server = LoneServer(connection, connection, array("Q", [0] * PAGE_WORDS), -1)
    answer_stacks(socket.socket(fileno=side), server.stacks_of)
    server.serve()


if __name__ == "__main__":
    main()
