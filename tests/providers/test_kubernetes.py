"""The Kubernetes provider with its client library, against a server that checks its requests."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.providers.orders import OWNER, order
from tests.support.pods import Cluster
from windlass.domain.pools.pools import Pool
from windlass.domain.values.errors import InvalidInput
from windlass.ports.provider import Machine, Owner, ProviderFault
from windlass.providers.kubernetes import KubernetesProvider


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.stop()


def provider(
    cluster: Cluster, folder: Path, token: str = "pod-token", **options: Any
) -> KubernetesProvider:
    given = {
        "image": "registry.example/windlass:1", "namespace": "jobs",
        "kubeconfig": cluster.kubeconfig(folder, token),
    }  # fmt: skip
    return KubernetesProvider(
        Pool(name="build", provider="kubernetes", options={**given, **options})
    )


def test_pods_are_created_found_and_deleted(cluster: Cluster, tmp_path: Path) -> None:
    async def play() -> None:
        made = provider(cluster, tmp_path)
        assert await made.find(OWNER) == []
        machine = await made.launch(order())
        assert machine == Machine("build-1", "build-1")
        assert await made.find(OWNER) == [machine]
        assert await made.find(Owner(OWNER.installation, "other")) == []
        assert await made.find(Owner("another", OWNER.pool)) == []
        await made.terminate([machine])
        assert await made.find(OWNER) == []
        await made.terminate([machine])

    asyncio.run(play())


def test_a_token_is_one_pod(cluster: Cluster, tmp_path: Path) -> None:
    first = asyncio.run(provider(cluster, tmp_path).launch(order()))
    again = asyncio.run(provider(cluster, tmp_path).launch(order(code="enrol_other")))
    assert first == again
    assert len(cluster.pods) == 1


def test_the_pod_says_what_to_run_and_where(cluster: Cluster, tmp_path: Path) -> None:
    made = provider(
        cluster, tmp_path, labels={"team": "a"}, command=["nice"],
        container={"resources": {"limits": {"cpu": "2"}}, "env": [{"name": "A", "value": "b"}]},
        pod={"nodeSelector": {"disk": "fast"}},
    )  # fmt: skip
    asyncio.run(made.launch(order()))
    pod = cluster.pods["jobs", "build-1"]
    assert pod["metadata"]["labels"] == {
        "team": "a", "windlass.dev/installation": OWNER.installation, "windlass.dev/pool": "build",
    }  # fmt: skip
    assert pod["spec"]["nodeSelector"] == {"disk": "fast"}
    assert pod["spec"]["restartPolicy"] == "Never"
    (container,) = pod["spec"]["containers"]
    assert container == {
        "name": "worker",
        "image": "registry.example/windlass:1",
        "resources": {"limits": {"cpu": "2"}},
        "command": [
            "nice", "windlass", "worker", "--name", "build-1", "--slots", "2", "--resources",
            "cpus=4",
        ],
        "env": [
            {"name": "A", "value": "b"},
            {"name": "WINDLASS_SERVER", "value": "http://127.0.0.1:9"},
            {"name": "WINDLASS_CODE", "value": "enrol_secret"},
        ],
    }  # fmt: skip


def test_all_pages_are_read_and_ended_pods_removed(cluster: Cluster, tmp_path: Path) -> None:
    async def play() -> None:
        made = provider(cluster, tmp_path)
        for n in range(5):
            await made.launch(order(f"build-{n}"))
        cluster.set_phase("build-3", "Failed")
        cluster.set_phase("build-4", "Running")
        found = sorted(machine.token for machine in await made.find(OWNER))
        assert found == ["build-0", "build-1", "build-2", "build-4"]

    asyncio.run(play())
    assert ("jobs", "build-3") not in cluster.pods


@pytest.mark.parametrize("status", [403, 500])
def test_a_refusal_is_told_in_the_clusters_words(
    cluster: Cluster, tmp_path: Path, status: int
) -> None:
    cluster.refuses = (status, "exceeded quota: pods")
    with pytest.raises(ProviderFault, match=f"Kubernetes answered {status}: exceeded quota"):
        asyncio.run(provider(cluster, tmp_path).launch(order()))


def test_wrong_credentials_are_told(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(ProviderFault, match="answered 401"):
        asyncio.run(provider(cluster, tmp_path, token="wrong").find(OWNER))


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    options = {"image": "i", "kubeconfig": str(tmp_path / "none")}
    made = KubernetesProvider(Pool(name="p", provider="kubernetes", options=options))
    with pytest.raises(ProviderFault, match="expected a cluster's configuration"):
        asyncio.run(made.find(OWNER))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({}, "options.image"),
        ({"image": "i", "pod": []}, "options.pod"),
        ({"image": "i", "labels": {"a": 1}}, "options.labels.a"),
        ({"image": "i", "zone": "a"}, "options.zone"),
    ],
)
def test_options_are_refused_by_name(options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        KubernetesProvider(Pool(name="p", provider="kubernetes", options=options))
    assert error.value.field == field
