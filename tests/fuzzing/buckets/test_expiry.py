"""The lifecycle rule that expires builds, next to rules that others have set."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from tests.support.s3 import S3Server
from windlass.domain.values.errors import StoreUnavailable
from windlass_fuzz.buckets.expiry import ensure_bucket, merge_rules, rule_for, set_expiry_rule

OTHER: dict[str, Any] = {
    "ID": "logs",
    "Filter": {"Prefix": "logs/"},
    "Status": "Enabled",
    "Expiration": {"Days": 30},
}


@pytest.fixture
def client(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    import boto3

    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    made = boto3.Session().client("s3")
    yield made
    made.close()


def rules(client: Any, bucket: str) -> dict[str, tuple[str, int]]:
    found = client.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    return {rule["ID"]: (rule["Filter"]["Prefix"], rule["Expiration"]["Days"]) for rule in found}


def test_builds_of_a_solver_go_after_seven_days(client: Any) -> None:
    assert set_expiry_rule("lifecycle-new", "toy", "below")
    expected = {"windlass-fuzz-toy": ("below/solvers/toy/builds/", 7)}
    assert rules(client, "lifecycle-new") == expected


def test_keys_that_a_program_used_before_do_not_count(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import boto3

    with monkeypatch.context() as before:
        before.setenv("AWS_ACCESS_KEY_ID", "another")
        before.setenv("AWS_SECRET_ACCESS_KEY", "another")
        boto3.setup_default_session()
        boto3.client("s3").close()
    assert set_expiry_rule("lifecycle-keys", "toy")


def test_rules_of_others_stay_and_ours_is_there_once(client: Any) -> None:
    ensure_bucket(client, "lifecycle-others")
    client.put_bucket_lifecycle_configuration(
        Bucket="lifecycle-others", LifecycleConfiguration={"Rules": [OTHER]}
    )
    for solver in ("toy", "toy", "second"):
        set_expiry_rule("lifecycle-others", solver)
    assert rules(client, "lifecycle-others") == {
        "logs": ("logs/", 30),
        "windlass-fuzz-toy": ("solvers/toy/builds/", 7),
        "windlass-fuzz-second": ("solvers/second/builds/", 7),
    }


def test_a_bucket_that_appears_meanwhile_is_taken(client: Any) -> None:
    with Stubber(client) as answers:
        answers.add_client_error("head_bucket", "404")
        answers.add_client_error("create_bucket", "BucketAlreadyOwnedByYou")
        ensure_bucket(client, "lifecycle-race")
        answers.add_client_error("head_bucket", "404")
        answers.add_client_error("create_bucket", "BucketAlreadyExists")
        with pytest.raises(ClientError, match="BucketAlreadyExists"):  # somebody else's
            ensure_bucket(client, "lifecycle-race")


def test_an_older_rule_of_ours_is_replaced() -> None:
    old = rule_for("toy") | {"Expiration": {"Days": 1}}
    assert merge_rules([old, OTHER], rule_for("toy")) == [OTHER, rule_for("toy")]


def test_a_rule_of_the_old_form_keeps_its_meaning_beside_ours() -> None:
    """S3 refuses prefixes and filters in one configuration."""
    old = {"ID": "old", "Prefix": "logs/", "Status": "Enabled", "Expiration": {"Days": 3}}
    kept, own = merge_rules([old], rule_for("toy"))
    assert kept == {
        "ID": "old", "Filter": {"Prefix": "logs/"}, "Status": "Enabled", "Expiration": {"Days": 3}
    }  # fmt: skip
    assert own == rule_for("toy")


def test_a_server_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("boto3")
    for name, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ACCESS_KEY_ID": "made-here",
        "AWS_SECRET_ACCESS_KEY": "made-here",
        "AWS_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreUnavailable, match="nowhere"):
        set_expiry_rule("nowhere", "toy")
