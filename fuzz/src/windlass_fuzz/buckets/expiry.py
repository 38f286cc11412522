"""The lifecycle rule that deletes builds after seven days, added to the bucket's other rules."""

import os
from typing import Any, Final

from windlass.blobs.faults import CHECK_KEYS, NO_KEYS, unreachable_advice
from windlass.domain.values.errors import StoreUnavailable, WindlassError
from windlass_fuzz.buckets.layout import BUILDS_KEPT_MS, builds_prefix
from windlass_fuzz.errors import InvalidSetting

DAYS: Final = BUILDS_KEPT_MS // 86_400_000
# Settings of the whole configuration, which S3 drops unless we send them again.
_KEPT_SETTINGS: Final = ("TransitionDefaultMinimumObjectSize",)
_NONE_YET: Final = ("NoSuchLifecycleConfiguration",)
_NO_BUCKET: Final = ("NoSuchBucket", "404", "NotFound")
_OURS_ALREADY: Final = "BucketAlreadyOwnedByYou"
_FORBIDDEN: Final = ("403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch")
_NO_ANSWER: Final = (
    "EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "ConnectionClosedError",
    "SSLError",
)  # fmt: skip


def rule_for(solver: str, prefix: str = "") -> dict[str, Any]:
    """Returns the rule for a solver's builds; `prefix` is the pipeline's prefix in the bucket."""
    folder = "/".join(part for part in (prefix, builds_prefix(solver)) if part)
    return {
        "ID": f"windlass-fuzz-{solver}",
        "Filter": {"Prefix": f"{folder}/"},
        "Status": "Enabled",
        "Expiration": {"Days": DAYS},
    }


def merge_rules(rules: list[dict[str, Any]], own: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the other rules unchanged, and ours exactly once."""
    return [*(_with_filter(rule) for rule in rules if rule.get("ID") != own["ID"]), own]


def _with_filter(rule: dict[str, Any]) -> dict[str, Any]:
    """Moves the prefix of an old-style rule into a filter: S3 refuses a mix of both forms."""
    if "Filter" in rule or "Prefix" not in rule:
        return rule
    rest = {name: value for name, value in rule.items() if name != "Prefix"}
    return rest | {"Filter": {"Prefix": rule["Prefix"]}}


def set_expiry_rule(bucket: str, solver: str, prefix: str = "") -> bool:
    """Sets the rule, creating the bucket if needed; returns False if it was already set."""
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError

        from windlass.blobs.s3 import endpoint_of_environment
    except ImportError:
        raise InvalidSetting(
            "bucket",
            f"cannot set the expiry rule of s3://{bucket}: boto3 is not installed; run "
            "pip install 'windlass[fuzz]'",
        ) from None
    own = rule_for(solver, prefix)
    try:
        # A separate session: the module's default one keeps the first credentials it ever saw.
        client = boto3.Session().client(
            "s3",
            endpoint_url=endpoint_of_environment() or None,
            region_name=os.environ.get("AWS_REGION") or None,
        )
        ensure_bucket(client, bucket)
        before = _rules(client, bucket, ClientError)
        if own in before["Rules"]:
            return False
        client.put_bucket_lifecycle_configuration(
            Bucket=bucket,
            LifecycleConfiguration={"Rules": merge_rules(before["Rules"], own)},
            **{name: before[name] for name in _KEPT_SETTINGS if name in before},
        )
    except (BotoCoreError, ClientError) as error:
        raise _failed(bucket, error) from error
    return True


def ensure_bucket(client: Any, bucket: str) -> None:
    """Creates the bucket unless it exists; another program may create it at the same time."""
    refused = client.exceptions.ClientError
    try:
        client.head_bucket(Bucket=bucket)
        return
    except refused as error:
        if _code(error) not in _NO_BUCKET:
            raise
    region = client.meta.region_name
    located = {"CreateBucketConfiguration": {"LocationConstraint": region}}
    try:
        client.create_bucket(Bucket=bucket, **({} if region in (None, "us-east-1") else located))
    except refused as error:
        # S3 also answers this if the request was repeated because the first answer was lost.
        if _code(error) != _OURS_ALREADY:
            raise


def _rules(client: Any, bucket: str, refused: type[Exception]) -> dict[str, Any]:
    try:
        found: dict[str, Any] = client.get_bucket_lifecycle_configuration(Bucket=bucket)
    except refused as error:
        if _code(error) in _NONE_YET:
            return {"Rules": []}
        raise
    return found


def _code(error: Any) -> str:
    return str(error.response["Error"]["Code"])


def _failed(bucket: str, error: Exception) -> WindlassError:
    reason = " ".join(str(error).split())
    name = type(error).__name__
    if name in _NO_ANSWER:
        reason += f"; {unreachable_advice()}"
    elif name == "NoCredentialsError":
        reason = NO_KEYS
    elif name == "ClientError" and _code(error) in _FORBIDDEN:
        reason += f"; {CHECK_KEYS}"
    return StoreUnavailable(
        f"cannot set the expiry rule of bucket {bucket}: {reason}", outcome_unknown=True
    )
