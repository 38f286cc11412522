"""`windlass init`: writes the files of a farm."""

import os
import re
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from pathlib import Path
from shlex import quote
from string import Template
from typing import Annotated, Final, Literal, NamedTuple
from urllib.parse import urlsplit

from cyclopts import App, Parameter

from windlass.cli.options.flags import Json, Many
from windlass.cli.output.text import print_json, say
from windlass.client.settings import DEFAULT_PORT
from windlass.clock import RealSecrets
from windlass.domain.values.errors import InvalidInput

init = App(name="init", help="Write the files of a farm.")

Kind = Literal["machine", "servers", "slurm", "compose", "kubernetes"]

TEMPLATES: Final = Path(__file__).resolve().parents[2] / "farm"
PRIVATE: Final = frozenset({"server.env", "worker.env", "database.sql", ".env"})
# Under which name clients reach a farm, unless that is this machine's.
HOSTS: Final[dict[Kind, str]] = {
    "servers": "jobs.example", "kubernetes": "jobs.example", "compose": "localhost",
}  # fmt: skip
BLOCK: Final = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMON: Final = (
    "windlass.toml", "server.env", "worker.env", "certificates.sh", "windlass-users.conf",
    "windlass-server.service", "windlass-worker.service", "windlass-backup.service",
    "windlass-backup.timer",
)  # fmt: skip
_MONITORING: Final = {
    f"monitoring/{name}": f"common/{name}"
    for name in ("prometheus.yml", "alerts.yml", "grafana.json")
}
_UNITS: Final = {name: f"common/{name}" for name in _COMMON} | _MONITORING
_MACHINE: Final = _UNITS | {"backup.sh": "machine/backup.sh"}
_IMAGE: Final = {"Containerfile": "common/Containerfile"}
# The files of each kind, and the template of each.
FILES: Final[dict[Kind, dict[str, str]]] = {
    "machine": _MACHINE | {"README.md": "machine/README.md"},
    "servers": _UNITS | {
        name: f"servers/{name}"
        for name in ("README.md", "backup.sh", "database.sql", "haproxy.cfg")
    },
    "slurm": _MACHINE | {
        "README.md": "slurm/README.md", "README-server.md": "machine/README.md",
        "cluster.yaml": "slurm/cluster.yaml",
    },
    "compose": _IMAGE | {
        "README.md": "compose/README.md", "compose.yaml": "compose/compose.yaml",
        ".env": "compose/env",
    },
    "kubernetes": _IMAGE | {
        name: f"kubernetes/{name}"
        for name in (
            "README.md", "kustomization.yaml", "namespace.yaml", "servers.yaml", "ingress.yaml",
            "network.yaml", "first-token.yaml", "pool.yaml",
        )
    } | {name: f"common/{name}" for name in ("windlass.toml", "server.env", "certificates.sh")}
    | {"database.sql": "servers/database.sql"},
}  # fmt: skip


class FarmTemplate(Template):
    """`@@{name}`: shells, systemd and addresses use `$` and `@` themselves."""

    delimiter = "@@"


class FarmNames(NamedTuple):
    """What the files of a farm name."""

    host: str  # under which clients reach it
    port: int
    servers: tuple[str, ...]  # HOST:PORT of each
    store: str
    blobs: str
    password: str  # of the database's role
    folder: str = "farm"  # where the files are

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def values(self) -> dict[str, str]:
        """Returns what stands for each name in the templates."""
        hosts = [self.host, *(one.rpartition(":")[0] for one in self.servers)]
        unique = list(dict.fromkeys(hosts))
        database = urlsplit(self.store)
        return {
            "folder": self.folder,
            "host": self.host, "port": str(self.port), "address": self.address,
            "listen": f"0.0.0.0:{self.servers[0].rpartition(':')[2]}",
            "store": self.store, "blobs": self.blobs, "secrets": self._secrets(),
            "names": _quoted(unique), "alternatives": ",".join(map(_alternative, unique)),
            "targets": _quoted(self.servers),
            "all_addresses": ",".join(f"https://{one}" for one in self.servers),
            "backends": "\n".join(
                f"    server s{number} {one}" for number, one in enumerate(self.servers, 1)
            ),
            "machines": self._machines(),
            "db_user": database.username or "windlass", "db_password": self.password,
            "db_host": database.hostname or "127.0.0.1", "db_port": str(database.port or 5432),
            "s3_secret": RealSecrets().secret(),
            "db_name": database.path.strip("/") or "windlass",
        }  # fmt: skip

    def _secrets(self) -> str:
        """Returns the lines about passwords and keys, for servers that share a database."""
        if not self.store.startswith("postgres"):
            return ""
        return (
            f"# The password of the database's role.\nPGPASSWORD={self.password}\n\n"
            "# The keys of the bucket, and its address if it is not on AWS.\n"
            "# AWS_ACCESS_KEY_ID=\n# AWS_SECRET_ACCESS_KEY=\n"
            "# AWS_REGION=us-east-1\n# AWS_ENDPOINT_URL=https://s3.example\n"
        )

    def _machines(self) -> str:
        database = urlsplit(self.store)
        rows = [(self.host, "the load balancer"), *((one, "a server") for one in self.servers)]
        rows.append((database.hostname or "127.0.0.1", "PostgreSQL 15 or newer"))
        rows.append((self.blobs, "a bucket, at AWS or on a server of your own"))
        return "\n".join(f"| `{name}` | {what} |" for name, what in rows)


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _alternative(host: str) -> str:
    """Returns a name or an address as certificates have it."""
    try:
        return f"IP:{ip_address(host)}"
    except ValueError:
        return f"DNS:{host}"


def render(kind: Kind, names: FarmNames) -> dict[str, str]:
    """Returns the text of each file of a farm."""
    values = names.values()
    return {
        name: FarmTemplate((TEMPLATES / source).read_text()).substitute(values)
        for name, source in FILES[kind].items()
    }


def default_names(
    kind: Kind, host: str = "jobs.example", *, port: int = DEFAULT_PORT, password: str = "",
    servers: tuple[str, ...] = (), store: str | None = None, blobs: str | None = None,
) -> FarmNames:  # fmt: skip
    """Returns the names of a farm; those not given follow from its host."""
    if kind in ("servers", "kubernetes"):
        made = tuple(f"s{number}.{host}:{DEFAULT_PORT}" for number in (1, 2))
        if kind == "kubernetes":
            made = (f"windlass:{port}",)  # the name of their Service
        return FarmNames(
            host, port, servers or made, store or f"postgresql://windlass@db.{host}/windlass",
            blobs or "s3://windlass/blobs", password,
        )  # fmt: skip
    if kind == "compose":
        return FarmNames(
            host, port, servers or (f"{host}:{port}",),
            store or "postgresql://windlass@postgres/windlass",
            blobs or "s3://windlass/blobs", password,
        )  # fmt: skip
    return FarmNames(
        host, port, servers or (f"{host}:{port}",),
        store or "sqlite:///var/lib/windlass/windlass.db",
        blobs or "file:///var/lib/windlass/blobs", password,
    )  # fmt: skip


@init.command
def farm(
    directory: Path,
    /,
    *,
    kind: Kind = "machine",
    host: str | None = None,
    port: int = DEFAULT_PORT,
    server: Annotated[Many, Parameter(name="--server")] = None,
    store: str | None = None,
    blobs: str | None = None,
    json: Json = False,
) -> None:
    """Write the files of a farm: services, certificates, load balancer, monitoring, backups.

    README.md in the directory has every command, in order.

    Parameters
    ----------
    directory
        A new or empty directory.
    kind
        machine: a server on SQLite. servers: two servers on PostgreSQL behind a load balancer.
        slurm: one server, whose workers are jobs of Slurm.
        compose: a server, PostgreSQL, S3 and two workers in containers of one machine.
        kubernetes: two servers on PostgreSQL, and workers as pods that follow the load.
    host
        The name under which clients reach the farm. Default: this machine's name; for servers and
        kubernetes jobs.example; for compose localhost.
    port
        The port there.
    server
        HOST:PORT of a server behind the load balancer. Repeatable. Default: s1.HOST and s2.HOST.
    store
        The database. Default: SQLite; for servers and kubernetes
        postgresql://windlass@db.HOST/windlass, for compose its own.
    blobs
        Where to keep logs and artifacts. Default: a directory; s3://windlass/blobs for servers,
        kubernetes and compose.
    """
    if directory.exists() and any(directory.iterdir()):
        raise InvalidInput("directory", "a new or empty directory", str(directory))
    named = host or HOSTS.get(kind, os.uname().nodename)
    password = urlsplit(store or "").password or RealSecrets().secret()
    names = default_names(
        kind, named, port=port, password=password,
        servers=tuple(server or ()), store=store, blobs=blobs,
    )._replace(folder=quote(directory.resolve().name))  # fmt: skip
    texts = render(kind, names)
    for name, text in texts.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600 if name in PRIVATE else 0o644)
        path.write_text(text)
    if json:
        print_json({"directory": str(directory), "files": sorted(texts)})
    else:
        say(f"wrote the files of a farm; next, follow {directory / 'README.md'}:")
        for line in first_commands(texts["README.md"]):
            say(f"  {line}")


def first_commands(page: str, count: int = 3) -> Iterator[str]:
    """Yields the first commands of a guide, with the comments that say where to run them."""
    for block in BLOCK.findall(page):
        for line in filter(None, block.splitlines()):
            yield line
            count -= not line.startswith("#")
            if count == 0:
                return
