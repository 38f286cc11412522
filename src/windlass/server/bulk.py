"""Routes about many jobs at once."""

from litestar import Controller, post
from litestar.params import JSONBody

from windlass.api.bulk import edit_many
from windlass.domain.roles import Role
from windlass.server.guard import identity_of
from windlass.server.jobs import Ask
from windlass.server.services import UseServices
from windlass.wire.bulk import BulkReply, BulkRequest


class BulkRoutes(Controller):
    """Cancel, retry and prioritise by filter."""

    path = "/api/v1/jobs"
    tags = ("jobs",)

    @post("/bulk", opt={"role": Role.SUBMITTER}, status_code=200)
    async def bulk(
        self, request: Ask, data: JSONBody[BulkRequest], services: UseServices
    ) -> BulkReply:
        """Change the next of the jobs that a filter finds, or count them."""
        return await edit_many(services.engine, data, identity_of(request))
