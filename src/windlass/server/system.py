"""Routes about the server itself: health, metrics, verification, namespaces, names."""

from typing import Any

from litestar import Controller, Request, Response, get, post, put
from litestar.params import FromPath, JSONBody

from windlass.domain.errors import WindlassError
from windlass.domain.moments import format_moment
from windlass.domain.roles import Role
from windlass.engine.verify import verify
from windlass.server.guard import identity_of
from windlass.server.services import UseQueries, UseServices
from windlass.wire.files import NameInfo, NameList, NameRequest
from windlass.wire.system import Health, NamespaceList, Verified, ViolationInfo

Ask = Request[Any, Any, Any]


class SystemRoutes(Controller):
    """What operators and their tools ask of a server."""

    path = "/"
    tags = ("system",)

    @get("/healthz", opt={"role": None}, sync_to_thread=False)
    def healthz(self) -> Health:
        """The process is alive."""
        return Health("ok")

    @get("/readyz", opt={"role": None})
    async def readyz(self, services: UseServices) -> Response[Health]:
        """The store answers."""
        try:
            await services.engine.now()
        except WindlassError as error:
            return Response(Health(str(error)), status_code=503)
        return Response(Health("ok"))

    @get("/metrics", opt={"role": Role.VIEWER}, media_type="text/plain")
    async def metrics(self, services: UseServices) -> bytes:
        """For Prometheus."""
        pool = getattr(services.engine.store, "pool", None)
        return services.meters.render(await services.engine.metrics(), pool)

    @post("/api/v1/verify", opt={"role": Role.ADMIN}, status_code=200)
    async def verify(self, services: UseServices) -> Verified:
        """Replay the log, compare it with the state, check the invariants."""
        found = await verify(services.engine.store, services.engine.config)
        return Verified([ViolationInfo(v.invariant, v.message, v.job, v.seq) for v in found])

    @get("/api/v1/namespaces", opt={"role": Role.VIEWER})
    async def namespaces(self, request: Ask, queries: UseQueries) -> NamespaceList:
        """Those that have jobs, as far as the token sees them."""
        who = identity_of(request)
        return NamespaceList([name for name in await queries.namespaces() if who.sees(name)])

    @get("/api/v1/names", opt={"role": Role.VIEWER})
    async def names(self, request: Ask, services: UseServices) -> NameList:
        """What `$lookup` finds."""
        who = identity_of(request)
        rows = await services.engine.store.read(lambda tx: tx.files.names(None))
        return NameList(
            [
                NameInfo(
                    name=row.name,
                    namespace=row.namespace,
                    job=row.job,
                    artifact=row.artifact,
                    sha256=row.sha256,
                    set_at=format_moment(row.set_at),
                )
                for row in rows
                if who.sees(row.namespace)
            ]
        )

    @put("/api/v1/names/{name:path}", opt={"role": Role.SUBMITTER})
    async def set_name(
        self,
        request: Ask,
        name: FromPath[str],
        data: JSONBody[NameRequest],
        queries: UseQueries,
        services: UseServices,
    ) -> NameInfo:
        """Let a name stand for an artifact."""
        who = identity_of(request)
        await queries.check_visible([data.job], who)
        row = await services.files.set_name(name.strip("/"), data.job, data.artifact)
        return NameInfo(
            name=row.name,
            namespace=row.namespace,
            job=row.job,
            artifact=row.artifact,
            sha256=row.sha256,
            set_at=format_moment(row.set_at),
        )
