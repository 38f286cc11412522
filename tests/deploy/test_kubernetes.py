"""The manifests of `windlass init farm --kind kubernetes`, rendered by kubectl.

There is no cluster: each field is checked against the models of Kubernetes' own client, which are
made from its OpenAPI description, and what the containers run is run here.
"""

import asyncio
import base64
import os
import re
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from kubernetes import client

from tests.cli.program import run_here
from tests.deploy.machines import wait_until
from tests.providers.orders import order
from tests.support.debian import missing_reason
from tests.support.loopback import die_with_parent, free_port
from tests.support.pods import Cluster
from windlass.domain.pools.pools import Pool
from windlass.providers.kubernetes import KubernetesProvider

PLAIN: Final[dict[str, type | tuple[type, ...]]] = {
    "str": str,
    "int": int,
    "bool": bool,
    "bytes": str,
    "object": (str, int, dict),
}
MAX_S: Final = 120


def write_farm(folder: Path, *words: str) -> Path:
    """Writes the files of a farm."""
    words = ("init", "farm", str(folder), "--kind", "kubernetes", *words)
    done = run_here(words, {"PATH": "/usr/bin"})
    assert done.returncode == 0, done.stderr
    return folder


def render(folder: Path) -> list[dict[str, Any]]:
    """Returns the manifests, as `kubectl apply --kustomize` sends them."""
    if reason := missing_reason("kubectl"):
        pytest.skip(reason)
    done = subprocess.run(
        ["kubectl", "kustomize", folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def build(kind: str, value: Any, where: str) -> object:
    """Builds a model of Kubernetes' client; fails at unknown, missing and mistyped fields."""
    if inner := re.fullmatch(r"(?:list|List)\[(.*)\]", kind):
        assert isinstance(value, list), where
        return [build(inner[1], one, f"{where}[{number}]") for number, one in enumerate(value)]
    if inner := re.fullmatch(r"(?:dict|Dict)[\[(]str, (.*)[\])]", kind):
        assert isinstance(value, dict), where
        return {key: build(inner[1], one, f"{where}.{key}") for key, one in value.items()}
    if kind in PLAIN:
        assert isinstance(value, PLAIN[kind]), (where, value)
        return value
    model = getattr(client, kind)
    names = {shown: name for name, shown in model.attribute_map.items()}
    assert isinstance(value, dict), where
    assert value.keys() <= names.keys(), (where, value.keys() - names.keys())
    return model(**{
        names[key]: build(model.openapi_types[names[key]], one, f"{where}.{key}")
        for key, one in value.items()
    })  # fmt: skip


def check(manifest: dict[str, Any]) -> None:
    """Fails unless a manifest is one that Kubernetes knows."""
    version = manifest["apiVersion"].rpartition("/")[2].capitalize()
    build(f"{version}{manifest['kind']}", manifest, manifest["kind"])


def pods_of(manifests: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields the description of each pod."""
    for manifest in manifests:
        if manifest["kind"] in ("Deployment", "Job"):
            yield manifest["spec"]["template"]["spec"]


def test_kubernetes_knows_each_field_of_the_manifests(tmp_path: Path) -> None:
    farm = write_farm(tmp_path / "farm")
    manifests = [*render(farm), yaml.safe_load((farm / "first-token.yaml").read_text())]
    for manifest in manifests:
        check(manifest)
        assert manifest["metadata"].get("namespace", "windlass") == "windlass"
    kinds = {manifest["kind"] for manifest in manifests}
    assert {"Deployment", "Ingress", "NetworkPolicy", "PodDisruptionBudget", "Role"} <= kinds
    (deployment,) = (one for one in manifests if one["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(AssertionError, match="readynessProbe"):
        check(deployment)


def test_pods_fit_the_standard_that_their_namespace_enforces(tmp_path: Path) -> None:
    farm = write_farm(tmp_path / "farm")
    cluster = Cluster()
    try:
        pool = yaml.safe_load((farm / "pool.yaml").read_text())
        pool["options"]["kubeconfig"] = cluster.kubeconfig(tmp_path, "pod-token")
        made = KubernetesProvider(
            Pool(name=pool["name"], provider="kubernetes", options=pool["options"])
        )
        asyncio.run(made.launch(order()))
        ((_, worker),) = cluster.pods.items()
    finally:
        cluster.stop()
    first = yaml.safe_load((farm / "first-token.yaml").read_text())
    build("V1PodSpec", worker["spec"], "worker")
    for pod in (*pods_of([*render(farm), first]), worker["spec"]):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


class Kubelet:
    """Runs the containers of manifests as processes of this machine, one after the other."""

    def __init__(self, folder: Path, manifests: list[dict[str, Any]]) -> None:
        self.folder = folder
        by_kind = {one["kind"]: one for one in manifests}
        secret = by_kind["Secret"]["data"].items()
        self.secret = {name: base64.b64decode(value).decode() for name, value in secret}
        (folder / "windlass.toml").write_text(by_kind["ConfigMap"]["data"]["windlass.toml"])

    def start(self, container: dict[str, Any]) -> "subprocess.Popen[str]":
        """Starts what a container runs, with its variables and its configuration."""
        given = {one["name"]: one["value"] for one in container.get("env", ())}
        env = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "WINDLASS_DATA": str(self.folder / "data"), **self.secret, **given,
        }  # fmt: skip
        if "WINDLASS_CONFIG" in env:
            env["WINDLASS_CONFIG"] = str(self.folder / Path(env["WINDLASS_CONFIG"]).name)
        words = [*container.get("command", ["windlass"]), *container["args"]]
        words = [re.sub(r"\$\((\w+)\)", lambda name: env[name[1]], word) for word in words]
        return subprocess.Popen(
            words,
            env=env,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509
        )

    def run(self, container: dict[str, Any]) -> str:
        """Runs a container to its end; returns what it printed."""
        process = self.start(container)
        said, _ = process.communicate(timeout=MAX_S)
        assert process.returncode == 0
        return said


def test_what_the_containers_run_becomes_a_server_that_its_probes_find_ready(
    tmp_path: Path, postgres_dsn: str
) -> None:
    port = free_port()
    blobs = f"file://{tmp_path}/blobs"
    farm = write_farm(
        tmp_path / "farm", "--store", postgres_dsn, "--blobs", blobs, "--port", str(port)
    )
    manifests = render(farm)
    kubelet = Kubelet(tmp_path, manifests)
    first = yaml.safe_load((farm / "first-token.yaml").read_text())
    token = kubelet.run(first["spec"]["template"]["spec"]["containers"][0]).strip()
    (pod,) = pods_of(manifests)
    kubelet.run(pod["initContainers"][0])
    container = pod["containers"][0]
    server = kubelet.start(container)
    try:
        for name in ("readinessProbe", "livenessProbe"):
            wait_until(name, partial(is_healthy, container[name], port))
        told = {"WINDLASS_SERVER": f"http://127.0.0.1:{port}", "WINDLASS_TOKEN": token}
        applied = run_here(("pools", "apply", str(farm / "pool.yaml")), told)
        assert applied.stdout.startswith("pods: applied"), applied.stderr
    finally:
        server.terminate()
        server.communicate(timeout=MAX_S)
    names = tomllib.loads((tmp_path / "windlass.toml").read_text())["http"]["host_names"]
    assert names == ["jobs.example", "windlass"]


def is_healthy(probe: dict[str, Any], port: int) -> bool:
    """Asks as a kubelet does."""
    get = probe["httpGet"]
    headers = {one["name"]: one["value"] for one in get["httpHeaders"]}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{get['path']}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
