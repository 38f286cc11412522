"""Workers as pods: one pod each, named by its token and found by its labels."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import HTTPError

from windlass.domain.pools.pools import Pool
from windlass.ports.provider import Machine, Order, Owner, ProviderFault
from windlass.providers.options import Options

T = TypeVar("T")

_config: Any = config  # the library has no type annotations

INSTALLATION: Final = "windlass.dev/installation"
POOL: Final = "windlass.dev/pool"
ENDED: Final = ("Succeeded", "Failed")
CONFLICT: Final = 409
NOT_FOUND: Final = 404
# Seconds to connect and to answer. We read the raw answer, because the library's models differ
# from version to version.
RAW: Final[dict[str, Any]] = {"_request_timeout": (10, 30), "_preload_content": False}
# Longer than an agent needs to hand back its jobs.
GRACE_S: Final = 90


class KubernetesProvider:
    """Options: `image`, and `namespace`, `kubeconfig`, `context`, `command` (before the worker's
    own arguments), `labels`, `container` and `pod` (fields merged into the container and the spec).
    """

    settle_ms = 10_000
    host = ""

    def __init__(self, pool: Pool) -> None:
        options = Options(pool.options)
        self._image = options.text("image")
        self._namespace = options.text("namespace", "default")
        self._kubeconfig = options.optional("kubeconfig")
        self._context = options.optional("context")
        self._command = options.words("command", ())
        self._labels = options.texts("labels")
        self._container = options.mapping("container")
        self._pod = options.mapping("pod")
        options.done()
        self._made: Any = None

    async def launch(self, order: Order) -> Machine:
        """Creates a pod named by the token, or returns the existing pod of this name."""
        return await _ask(lambda: self._create(order))

    async def find(self, owner: Owner) -> Sequence[Machine]:
        """Returns the pool's pods, and removes those that have ended."""
        return await _ask(lambda: self._look(owner))

    async def terminate(self, machines: Sequence[Machine]) -> None:
        """Deletes the pods."""
        await _ask(lambda: self._delete([machine.id for machine in machines]))

    @property
    def _core(self) -> Any:
        """Creates the client in the thread that needs it first: it reads files."""
        if self._made is None:
            self._made = client.CoreV1Api(self._connect())
        return self._made

    def _connect(self) -> Any:
        if self._kubeconfig is None and self._context is None:
            try:
                found = client.Configuration()
                _config.load_incluster_config(client_configuration=found)
                return client.ApiClient(found)
            except ConfigException:
                pass
        try:
            return _config.new_client_from_config(self._kubeconfig, self._context)
        except (ConfigException, OSError) as error:
            raise ProviderFault(
                f"expected a cluster's configuration in ~/.kube/config or options.kubeconfig, "
                f"or a service account of this pod: {error}"
            ) from None

    def _create(self, order: Order) -> Machine:
        try:
            self._core.create_namespaced_pod(self._namespace, self._body(order), **RAW)
        except ApiException as error:
            if error.status != CONFLICT:
                raise
        return Machine(order.token, order.token)

    def _body(self, order: Order) -> dict[str, Any]:
        env = [{"name": name, "value": value} for name, value in order.environment().items()]
        container = {
            "name": "worker",
            "image": self._image,
            **self._container,
            "command": [*self._command, *order.command()],
            "env": [*self._container.get("env", ()), *env],
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": order.token, "labels": {**self._labels, **_labels(order.owner)}},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": GRACE_S,
                **self._pod,
                "containers": [container, *self._pod.get("containers", ())],
            },
        }

    def _look(self, owner: Owner) -> list[Machine]:
        selector = ",".join(f"{name}={value}" for name, value in _labels(owner).items())
        found: list[Machine] = []
        ended: list[str] = []
        after: str | None = None
        while True:
            reply = self._core.list_namespaced_pod(
                self._namespace, label_selector=selector, limit=500, _continue=after, **RAW
            )
            page = json.loads(reply.data)
            for pod in page["items"]:
                name = pod["metadata"]["name"]
                if pod.get("status", {}).get("phase") in ENDED:
                    ended.append(name)
                else:
                    found.append(Machine(name, name))
            after = page["metadata"].get("continue")
            if not after:
                self._delete(ended)
                return found

    def _delete(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                self._core.delete_namespaced_pod(name, self._namespace, **RAW)
            except ApiException as error:
                if error.status != NOT_FOUND:
                    raise


def _labels(owner: Owner) -> dict[str, str]:
    return {INSTALLATION: owner.installation, POOL: owner.pool}


async def _ask(call: Callable[[], T]) -> T:
    """Runs a blocking call of the client in a thread."""
    try:
        return await asyncio.to_thread(call)
    except ApiException as error:
        raise ProviderFault(f"Kubernetes answered {error.status}: {_message(error)}") from None
    except HTTPError as error:
        raise ProviderFault(f"Kubernetes cannot be reached: {error}") from None


def _message(error: ApiException) -> str:
    try:
        return str(json.loads(error.body or "")["message"])
    except (TypeError, ValueError, KeyError):
        return str(error.reason)
