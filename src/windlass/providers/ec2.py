"""Workers on EC2: one instance each, found by its tags.

A launch carries a client token, so EC2 starts one instance however often we ask. We still check the
tags first: they remain when the client token has expired, and some EC2-compatible services ignore
client tokens.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from windlass.domain.pools.pools import Pool
from windlass.domain.values.errors import InvalidInput
from windlass.ports.provider import Machine, Order, Owner, ProviderFault
from windlass.providers.options import Options

T = TypeVar("T")

INSTALLATION: Final = "windlass:installation"
POOL: Final = "windlass:pool"
TOKEN: Final = "windlass:token"
# Stopped instances still cost money, so they are terminated like others.
EXISTING: Final = ("pending", "running", "stopping", "stopped")
# Error codes that mean there is no spot capacity.
NO_SPOT: Final = frozenset({
    "InsufficientInstanceCapacity", "InsufficientCapacity", "SpotMaxPriceTooLow",
    "MaxSpotInstanceCountExceeded", "InsufficientHostCapacity", "Unsupported",
})  # fmt: skip
# EC2 announces two minutes ahead that it reclaims a spot machine. The script then asks the
# worker, which has replaced the script's process, to stop: it hands back unfinished jobs.
NOTICE_SECONDS: Final = 5
NOTICE: Final = """
(imds=${{AWS_EC2_METADATA_SERVICE_ENDPOINT:-http://169.254.169.254}}/latest
ask() {{ curl -sf -m 2 --noproxy '*' "$@"; }}
while sleep {seconds} && kill -0 $$; do
  key=$(ask -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' "$imds/api/token") || continue
  header="X-aws-ec2-metadata-token: $key"
  ask -H "$header" "$imds/meta-data/spot/instance-action" && kill -TERM $$ && break
done) >/dev/null 2>&1 &
"""
UNKNOWN: Final = "InvalidInstanceID.NotFound"
ASKED_BEFORE: Final = "IdempotentParameterMismatch"


class Ec2Provider:
    """Options: `launch_template` (id or name, with `launch_template_version`) or `image`, and
    `instance_type`, `region`, `profile`, `subnet`, `security_groups`, `key_name`,
    `instance_profile`, `setup` (shell, before the worker), `tags`, `endpoint_url`."""

    settle_ms = 60_000
    host = ""

    def __init__(self, pool: Pool) -> None:
        options = Options(pool.options)
        self._region = options.optional("region")
        self._profile = options.optional("profile")
        self._endpoint = options.optional("endpoint_url")
        self._setup = options.text("setup", "")
        self._tags = options.texts("tags")
        self._request = _request(options)
        options.done()
        self._made: Any = None

    async def launch(self, order: Order) -> Machine:
        """Starts one instance; on demand if there is no spot capacity."""
        return await _ask(lambda: self._launch(order))

    async def find(self, owner: Owner) -> Sequence[Machine]:
        """Returns the pool's instances that are neither terminated nor terminating."""
        return await _ask(lambda: self._look(owner))

    async def terminate(self, machines: Sequence[Machine]) -> None:
        """Terminates the machines one by one, so that an unknown id does not stop the others."""
        await _ask(lambda: self._end_all(machines))

    @property
    def _client(self) -> Any:
        """Creates the client in the thread that needs it first, since it does I/O."""
        if self._made is None:
            session = boto3.session.Session(profile_name=self._profile, region_name=self._region)
            if session.get_credentials() is None:
                raise ProviderFault(
                    "no AWS credentials found in the environment, a profile or the machine's "
                    "role; set them for the server, or set options.profile"
                )
            config = Config(connect_timeout=10, read_timeout=30, retries={"total_max_attempts": 3})
            self._made = session.client("ec2", endpoint_url=self._endpoint, config=config)
        return self._made

    def _launch(self, order: Order) -> Machine:
        known = self._by_token(order)
        if known is not None:
            return known
        try:
            return self._run(order, order.spot)
        except ClientError as error:
            if order.spot and _code(error) in NO_SPOT:
                return self._run(order, False)
            if _code(error) == ASKED_BEFORE and (found := self._by_token(order)) is not None:
                return found
            raise

    def _run(self, order: Order, spot: bool) -> Machine:
        market = {"InstanceMarketOptions": {"MarketType": "spot"}} if spot else {}
        tags = {
            **self._tags, "Name": order.token, INSTALLATION: order.owner.installation,
            POOL: order.owner.pool, TOKEN: order.token,
        }  # fmt: skip
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        made = self._client.run_instances(
            **self._request,
            **market,
            MinCount=1,
            MaxCount=1,
            ClientToken=f"{order.owner.installation}-{order.token}{'-spot' if spot else ''}"[:64],
            InstanceInitiatedShutdownBehavior="terminate",
            UserData=order.script(self._before(order)),
            TagSpecifications=[
                {"ResourceType": "instance", "Tags": listed},
                {"ResourceType": "volume", "Tags": listed},
            ],
        )
        return Machine(order.token, made["Instances"][0]["InstanceId"])

    def _before(self, order: Order) -> str:
        """Returns the shell lines that run before the worker."""
        notice = NOTICE.format(seconds=NOTICE_SECONDS) if order.spot else ""
        return f"{self._setup.rstrip()}{notice}".lstrip()

    def _by_token(self, order: Order) -> Machine | None:
        found = (machine for machine in self._look(order.owner) if machine.token == order.token)
        return next(found, None)

    def _look(self, owner: Owner) -> list[Machine]:
        filters = [
            {"Name": f"tag:{INSTALLATION}", "Values": [owner.installation]},
            {"Name": f"tag:{POOL}", "Values": [owner.pool]},
            {"Name": "instance-state-name", "Values": list(EXISTING)},
        ]
        found: list[Machine] = []
        for page in self._client.get_paginator("describe_instances").paginate(Filters=filters):
            for reservation in page["Reservations"]:
                for instance in reservation["Instances"]:
                    tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", ())}
                    found.append(Machine(tags.get(TOKEN, ""), instance["InstanceId"]))
        return found

    def _end_all(self, machines: Sequence[Machine]) -> None:
        for machine in machines:
            try:
                self._client.terminate_instances(InstanceIds=[machine.id])
            except ClientError as error:
                if _code(error) != UNKNOWN:
                    raise


def _request(options: Options) -> dict[str, Any]:
    """Returns the launch parameters that all instances of the pool share."""
    request: dict[str, Any] = {}
    template = options.optional("launch_template")
    version = options.text("launch_template_version", "$Latest")
    if template is not None:
        key = "LaunchTemplateId" if template.startswith("lt-") else "LaunchTemplateName"
        request["LaunchTemplate"] = {key: template, "Version": version}
    named = {"image": "ImageId", "instance_type": "InstanceType", "subnet": "SubnetId",
             "key_name": "KeyName"}  # fmt: skip
    for name, field in named.items():
        if (value := options.optional(name)) is not None:
            request[field] = value
    if groups := options.words("security_groups", ()):
        request["SecurityGroupIds"] = groups
    if (profile := options.optional("instance_profile")) is not None:
        request["IamInstanceProfile"] = {"Name": profile}
    if template is None and "ImageId" not in request:
        raise InvalidInput("options.launch_template", "given, or image instead of it", "neither")
    return request


async def _ask(call: Callable[[], T]) -> T:
    """Runs a blocking call of boto3 in a thread."""
    try:
        return await asyncio.to_thread(call)
    except (BotoCoreError, ClientError) as error:
        raise ProviderFault(f"EC2: {error}") from None


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
