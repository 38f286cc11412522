"""The EC2 provider with boto3, against moto's server on loopback.

Moto takes no notice of client tokens, so that what is idempotent here is so by its tags.
"""

import asyncio
import base64
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.providers.orders import OWNER, order
from tests.support.ec2 import Ec2Server, start_ec2
from windlass.domain.pools.pools import Pool
from windlass.domain.values.errors import InvalidInput
from windlass.ports.provider import Machine, Owner, ProviderFault
from windlass.providers.ec2 import Ec2Provider

IMAGE = "ami-12c6146b"  # one of those that moto has


@pytest.fixture(scope="module")
def running() -> Iterator[Ec2Server]:
    server = start_ec2()
    yield server
    server.stop()


@pytest.fixture
def server(running: Ec2Server, monkeypatch: pytest.MonkeyPatch) -> Ec2Server:
    """An empty cloud, and credentials that it takes."""
    running.reset()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    return running


def provider(server: Ec2Server, **options: object) -> Ec2Provider:
    given: dict[str, Any] = {
        "endpoint_url": server.endpoint, "region": "us-east-1", "image": IMAGE,
        "instance_type": "t3.small",
    }  # fmt: skip
    chosen = {name: value for name, value in {**given, **options}.items() if value is not None}
    return Ec2Provider(Pool(name="build", provider="ec2", options=chosen))


def client(server: Ec2Server) -> Any:
    return boto3.Session().client("ec2", endpoint_url=server.endpoint, region_name="us-east-1")


def instances(server: Ec2Server) -> list[dict[str, Any]]:
    found = client(server).describe_instances()["Reservations"]
    return [instance for one in found for instance in one["Instances"]]


def test_machines_are_started_found_and_ended(server: Ec2Server) -> None:
    async def play() -> None:
        made = provider(server, tags={"team": "a"})
        assert await made.find(OWNER) == []
        machine = await made.launch(order())
        assert await made.find(OWNER) == [machine]
        assert await made.find(Owner(OWNER.installation, "other")) == []
        assert await made.find(Owner("another", OWNER.pool)) == []
        await made.terminate([machine])
        assert await made.find(OWNER) == []
        await made.terminate([machine, Machine("x", "i-0123456789abcdef0")])

    asyncio.run(play())
    (instance,) = instances(server)
    assert instance["InstanceType"] == "t3.small"
    tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
    assert tags == {
        "team": "a", "Name": "build-1", "windlass:installation": OWNER.installation,
        "windlass:pool": "build", "windlass:token": "build-1",
    }  # fmt: skip


def test_a_token_is_one_machine_although_the_client_token_is_ignored(server: Ec2Server) -> None:
    async def play() -> None:
        machine = await provider(server).launch(order())
        # Another server, after a crash: another code, the same token.
        again = await provider(server).launch(order(code="enrol_other"))
        assert again == machine

    asyncio.run(play())
    assert len(instances(server)) == 1


def test_the_worker_is_in_the_user_data_after_the_setup(server: Ec2Server) -> None:
    machine = asyncio.run(provider(server, setup="apt-get install -y ffmpeg\n").launch(order()))
    asked = client(server).describe_instance_attribute(InstanceId=machine.id, Attribute="userData")[
        "UserData"
    ]["Value"]
    assert base64.b64decode(asked).decode().splitlines() == [
        "#!/bin/sh",
        "apt-get install -y ffmpeg",
        "export WINDLASS_SERVER=http://127.0.0.1:9",
        "export WINDLASS_CODE=enrol_secret",
        "exec windlass worker --name build-1 --slots 2 --resources cpus=4",
    ]


def test_a_launch_template_says_the_rest(server: Ec2Server) -> None:
    client(server).create_launch_template(
        LaunchTemplateName="builders",
        LaunchTemplateData={"ImageId": IMAGE, "InstanceType": "c5.large"},
    )
    made = provider(server, launch_template="builders", image=None, instance_type=None)
    asyncio.run(made.launch(order()))
    assert [one["InstanceType"] for one in instances(server)] == ["c5.large"]


def test_spot_is_asked_for_and_without_capacity_the_ordinary_price_is_paid(
    server: Ec2Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = provider(server)
    asyncio.run(made.launch(order(spot=True)))
    (instance,) = instances(server)
    assert instance.get("InstanceLifecycle") == "spot"

    # Moto never runs out of anything: the refusal is put where EC2 would answer with it.
    asked: list[bool] = []

    def refuse_spot(params: dict[str, Any], **_: object) -> None:
        asked.append("InstanceMarketOptions" in params)
        if asked[-1]:
            body = {"Error": {"Code": "InsufficientInstanceCapacity", "Message": "none left"}}
            raise ClientError(body, "RunInstances")

    made._client.meta.events.register("provide-client-params.ec2.RunInstances", refuse_spot)
    asyncio.run(made.launch(order("build-2", spot=True)))
    assert asked == [True, False]
    lifecycles = sorted(one.get("InstanceLifecycle", "") for one in instances(server))
    assert lifecycles == ["", "spot"]


def test_a_refusal_is_told_in_the_clouds_words(server: Ec2Server) -> None:
    made = provider(server, launch_template="nobody", image=None)
    with pytest.raises(ProviderFault, match=r"EC2: .*InvalidLaunchTemplateName.NotFound"):
        asyncio.run(made.launch(order()))


def test_a_cloud_that_does_not_answer_is_told(server: Ec2Server) -> None:
    made = provider(server, endpoint_url="http://127.0.0.1:9")
    with pytest.raises(ProviderFault, match="Could not connect"):
        asyncio.run(made.find(OWNER))


def test_missing_credentials_are_named(
    server: Ec2Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(ProviderFault, match="no AWS credentials found in the environment"):
        asyncio.run(provider(server).find(OWNER))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({}, "options.launch_template"),
        ({"image": 3}, "options.image"),
        ({"image": IMAGE, "security_groups": "sg-1"}, "options.security_groups"),
        ({"image": IMAGE, "tags": {"a": 1}}, "options.tags.a"),
        ({"image": IMAGE, "zone": "a"}, "options.zone"),
    ],
)
def test_options_are_refused_by_name(options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        Ec2Provider(Pool(name="p", provider="ec2", options=options))
    assert error.value.field == field
