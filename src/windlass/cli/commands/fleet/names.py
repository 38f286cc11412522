"""`windlass names`: names for artifacts, which jobs find with `$lookup`."""

from cyclopts import App

from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import Json
from windlass.cli.output.tables import print_rows
from windlass.cli.output.text import print_answer
from windlass.domain.values.errors import InvalidInput
from windlass.messages.files import NameInfo, NameList, NameRequest

names = App(name="names", help="Set and list names for artifacts, which `$lookup` finds.")


@names.command(name="list")
@names.default
def list_names(*, at: Connection = HERE, json: Json = False) -> None:
    """List names and the artifacts they refer to."""
    found = at.call("GET", "/api/v1/names", NameList).names
    rows = [(n.name, n.job, n.artifact, n.sha256[:12], n.set_at) for n in found]
    print_rows(found, json, ("name", "job", "artifact", "sha256", "set"), rows, "no names")


@names.command(name="set")
def set_name(name: str, artifact: str, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Point a name to an artifact.

    Parameters
    ----------
    name
        The name that jobs look up, such as environments/bookworm.
    artifact
        The artifact as JOB/NAME, such as 12/rootfs.tar.
    """
    job, separator, file = artifact.partition("/")
    if not separator or not job.isdigit() or not file:
        raise InvalidInput("artifact", "JOB/NAME, such as 12/rootfs.tar", artifact)
    request = NameRequest(job=int(job), artifact=file)
    made = at.call("PUT", f"/api/v1/names/{name}", NameInfo, request)
    print_answer(made, json, f"{made.name} → {made.job}/{made.artifact}")
