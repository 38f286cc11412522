"""As much of the Kubernetes API as pods need, over HTTP on loopback; it checks what it is asked."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

PODS = re.compile(r"/api/v1/namespaces/([a-z0-9-]+)/pods(?:/([a-z0-9-]+))?")
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
PAGE = 2  # pods in one answer, however many are asked for


class Cluster:
    """Pods by namespace and name; `refuses` is an answer for the next request."""

    def __init__(self) -> None:
        self.pods: dict[tuple[str, str], dict[str, Any]] = {}
        self.asked: list[tuple[str, str]] = []
        self.refuses: tuple[int, str] | None = None
        # Its methods have names that the library asks for, and that no other line mentions.
        methods = {
            "do_GET": _Handler.give_pods,
            "do_POST": _Handler.make_pod,
            "do_DELETE": _Handler.remove_pod,
            "log_message": _Handler.say_nothing,
        }
        handler = type("Handler", (_Handler,), {"world": self, **methods})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def kubeconfig(self, folder: Path, token: str) -> str:
        """A file that leads here."""
        path = folder / "kubeconfig"
        server = f"http://127.0.0.1:{self._server.server_port}"
        described = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        path.write_text(json.dumps(described))
        return str(path)

    def set_phase(self, name: str, phase: str) -> None:
        """What has become of a pod."""
        for (_, known), pod in self.pods.items():
            if known == name:
                pod["status"]["phase"] = phase


class _Handler(BaseHTTPRequestHandler):
    world: Cluster

    def say_nothing(self, *words: object) -> None:
        """A test run is no place for its log."""

    def give_pods(self) -> None:
        namespace, _, query = self._open()
        if namespace is None:
            return
        wanted = dict(part.split("=") for part in query.get("labelSelector", [""])[0].split(","))
        pods = [
            pod
            for (where, _), pod in sorted(self.world.pods.items())
            if where == namespace and wanted.items() <= pod["metadata"]["labels"].items()
        ]
        first = int(query.get("continue", ["0"])[0])
        following = str(first + PAGE) if len(pods) > first + PAGE else ""
        self._answer(
            200,
            {
                "kind": "PodList", "apiVersion": "v1", "metadata": {"continue": following},
                "items": pods[first : first + PAGE],
            },
        )  # fmt: skip

    def make_pod(self) -> None:
        namespace, _, _ = self._open()
        if namespace is None:
            return
        pod = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = pod["metadata"]["name"]
        wrong = _complaint(pod)
        if wrong:
            self._refuse(422, wrong)
        elif (namespace, name) in self.world.pods:
            self._refuse(409, f'pods "{name}" already exists')
        else:
            pod["status"] = {"phase": "Pending"}
            self.world.pods[namespace, name] = pod
            self._answer(201, pod)

    def remove_pod(self) -> None:
        namespace, name, _ = self._open()
        if namespace is None:
            return
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        pod = self.world.pods.pop((namespace, name or ""), None)
        if pod is None:
            self._refuse(404, f'pods "{name}" not found')
        else:
            self._answer(200, pod)

    def _open(self) -> tuple[str | None, str | None, dict[str, list[str]]]:
        parts = urlsplit(self.path)
        self.world.asked.append((self.command, parts.path))
        found = PODS.fullmatch(parts.path)
        if self.headers.get("Authorization") != "Bearer pod-token":
            self._refuse(401, "Unauthorized")
        elif self.world.refuses is not None:
            status, message = self.world.refuses
            self.world.refuses = None
            self._refuse(status, message)
        elif found is None:
            self._refuse(404, f"no {parts.path} here")
        else:
            return found[1], found[2], parse_qs(parts.query)
        return None, None, {}

    def _refuse(self, status: int, message: str) -> None:
        self._answer(status, {"kind": "Status", "status": "Failure", "message": message})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _complaint(pod: dict[str, Any]) -> str:
    """What a cluster would not accept of a pod."""
    if pod.get("kind") != "Pod" or pod.get("apiVersion") != "v1":
        return "kind and apiVersion must be those of a pod"
    meta, spec = pod["metadata"], pod["spec"]
    if not NAME.fullmatch(meta["name"]):
        return f"metadata.name: {meta['name']} is no DNS name"
    if not all(isinstance(v, str) and LABEL.fullmatch(v) for v in meta["labels"].values()):
        return "metadata.labels: no valid values"
    for container in spec.get("containers") or [{}]:
        if not container.get("name") or not container.get("image"):
            return "spec.containers: name and image are needed"
        if not all(isinstance(e.get("value"), str) for e in container.get("env", [])):
            return "spec.containers.env: values must be text"
    return "" if spec.get("restartPolicy") in ("Always", "OnFailure", "Never") else "restartPolicy"
