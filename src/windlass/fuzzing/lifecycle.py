"""The rule of a bucket that removes builds after seven days, beside the rules of others."""

import os
from typing import Any, Final

from windlass.domain.values.errors import InvalidInput, StoreUnavailable, WindlassError
from windlass.fuzzing.layout import BUILDS_KEPT_MS, builds_prefix

DAYS: Final = BUILDS_KEPT_MS // 86_400_000
# Besides the rules, for all of them at once; what is not said again is forgotten.
_ALSO_SAID: Final = ("TransitionDefaultMinimumObjectSize",)
_NONE_YET: Final = ("NoSuchLifecycleConfiguration",)
_NO_BUCKET: Final = ("NoSuchBucket", "404", "NotFound")


def rule_for(solver: str, prefix: str = "") -> dict[str, Any]:
    """The rule for a solver's builds; `prefix` is that of the pipeline in the bucket."""
    folder = "/".join(part for part in (prefix, builds_prefix(solver)) if part)
    return {
        "ID": f"windlass-fuzz-{solver}",
        "Filter": {"Prefix": f"{folder}/"},
        "Status": "Enabled",
        "Expiration": {"Days": DAYS},
    }


def merged(rules: list[dict[str, Any]], own: dict[str, Any]) -> list[dict[str, Any]]:
    """All rules of others as they are, and ours once."""
    return [*(_with_filter(rule) for rule in rules if rule.get("ID") != own["ID"]), own]


def _with_filter(rule: dict[str, Any]) -> dict[str, Any]:
    """Old rules name their prefix outside of a filter; S3 refuses to see both forms together."""
    if "Filter" in rule or "Prefix" not in rule:
        return rule
    rest = {name: value for name, value in rule.items() if name != "Prefix"}
    return rest | {"Filter": {"Prefix": rule["Prefix"]}}


def set_rule(bucket: str, solver: str, prefix: str = "") -> bool:
    """Put the rule into force; makes the bucket if there is none. False: it was in force."""
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError

        from windlass.blobs.s3 import endpoint_of_environment
    except ImportError:
        expected = "one whose rules can be set: pip install 'windlass[fuzz]'"
        raise InvalidInput("bucket", expected, f"s3://{bucket}") from None
    own = rule_for(solver, prefix)
    try:
        client = boto3.client(
            "s3",
            endpoint_url=endpoint_of_environment() or None,
            region_name=os.environ.get("AWS_REGION") or None,
        )
        _ensure_bucket(client, bucket, ClientError)
        before = _rules(client, bucket, ClientError)
        if own in before["Rules"]:
            return False
        client.put_bucket_lifecycle_configuration(
            Bucket=bucket,
            LifecycleConfiguration={"Rules": merged(before["Rules"], own)},
            **{name: before[name] for name in _ALSO_SAID if name in before},
        )
    except (BotoCoreError, ClientError) as error:
        raise _failed(bucket, error) from error
    return True


def _ensure_bucket(client: Any, bucket: str, refused: type[Exception]) -> None:
    try:
        client.head_bucket(Bucket=bucket)
    except refused as error:
        if _code(error) not in _NO_BUCKET:
            raise
        region = client.meta.region_name
        far = {"CreateBucketConfiguration": {"LocationConstraint": region}}
        client.create_bucket(Bucket=bucket, **({} if region in (None, "us-east-1") else far))


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
    said = " ".join(str(error).split())
    return StoreUnavailable(f"cannot set the rule of bucket {bucket}: {said}", outcome_unknown=True)
