"""Checks what users submitted in transactions of their own, as a normal submit is checked."""

import msgspec

from windlass.api.jobs import Jobs
from windlass.domain.access.roles import Identity, Role
from windlass.domain.rows.inbox import InboxRow
from windlass.domain.values.conversion import convert
from windlass.domain.values.errors import InvalidInput
from windlass.engine.inbox.inbox import Prepared
from windlass.wire.jobs import SubmitRequest


class InboxRequests:
    """Implements `Prepare`: a row of `inbox` has the rights of a submitter in its namespaces."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    async def prepare(self, row: InboxRow) -> Prepared:
        """Returns what the row submits; raises as `Jobs.submit` does."""
        try:
            request = convert(msgspec.json.decode(row.body), SubmitRequest, "submission")
        except msgspec.DecodeError as error:
            raise InvalidInput("submission", "JSON", str(error)) from None
        who = Identity(0, row.submitted_by, Role.SUBMITTER, row.namespaces)
        return Prepared(*await self._jobs.prepare(request, who))
