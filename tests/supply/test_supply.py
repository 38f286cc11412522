"""What we use comes with digests and known licences; no audit is claimed that did not happen."""

import json
import venv
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.supply.audit import FOUND, NOT_ASKED, audit, judge
from tests.supply.licences import PAGE, Licensed, all_licences, of_dashboard, page
from tests.supply.lock_file import LOCK, PARTS, part, read_lock
from tests.supply.requirements import ROOT, closure, ours
from tests.supply.sbom import describe


def test_each_file_that_may_be_installed_is_pinned_by_its_digest() -> None:
    without = [pin.name for pin in read_lock(LOCK).values() if not pin.digests]
    assert without == [], "run `make lock-hashes`"


@pytest.mark.parametrize("name", PARTS)
def test_the_smaller_locks_are_parts_of_the_large_one(name: str) -> None:
    assert (ROOT / name).read_text() == part(name, read_lock(LOCK)), "run `make lock-hashes`"


def test_the_lock_holds_what_the_project_asks_for() -> None:
    pins = read_lock(LOCK)
    for requirement in ours(["dev"]):
        if requirement.name != "windlass":
            version = pins[requirement.name.lower().replace("_", "-")].version
            assert requirement.specifier.contains(version), requirement
    assert set(closure(ours(["dev"]))) - {"pip"} <= set(pins)


def test_whatever_the_makefile_installs_from_a_lock_is_checked() -> None:
    lines = (ROOT / "Makefile").read_text().replace("\\\n", " ").splitlines()
    installing = [
        command
        for line in lines
        for command in line.split(";")
        if "--requirement" in command and ".lock" in command
    ]
    assert len(installing) >= 3
    assert all("--require-hashes" in command for command in installing), installing


def test_every_licence_is_allowed_and_listed() -> None:
    found = [*all_licences(), *of_dashboard()]
    assert [one for one in found if not one.is_allowed] == []
    assert PAGE.read_text() == page(), "run `make licences`"


@pytest.mark.parametrize(
    ("licence", "needed_by", "allowed"),
    [
        ("MIT", "core", True),
        ("Apache-2.0 AND MIT", "extra", True),
        ("GPL-3.0-or-later OR MIT", "core", True),
        ("MIT AND AGPL-3.0-only", "core", False),
        ("GPL-3.0-or-later", "core", False),
        ("GPL-3.0-or-later", "tool", True),
        ("unknown", "tool", False),
        ("Proprietary", "extra", False),
    ],
)
def test_a_licence_that_nobody_allowed_is_found(
    licence: str, needed_by: str, allowed: bool
) -> None:
    assert Licensed("x", "1", licence, needed_by).is_allowed is allowed


def test_a_bill_of_materials_fits_its_schema_and_names_what_we_use(tmp_path: Path) -> None:
    python, target = tmp_path / "venv" / "bin" / "python", tmp_path / "windlass.cdx.json"
    venv.create(tmp_path / "venv", with_pip=False)
    (packages,) = (tmp_path / "venv" / "lib").glob("*/site-packages")
    for found in closure(ours()).values():  # as installed, without their code
        about = packages / f"{found.name}-{found.version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(found.read_text("METADATA") or "")
    describe(python, target, "--no-validate")  # which takes ten times as long as the next line
    bill = json.loads(target.read_text())
    _fit_schema(bill)
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["name"] == "windlass"
    named = {component["name"].lower() for component in bill["components"]}
    assert set(closure(ours())) <= {name.replace("_", "-") for name in named}


def _fit_schema(bill: dict[str, Any]) -> None:
    schemas = files("cyclonedx.schema") / "_res"

    def read(address: str) -> Any:
        return json.loads((schemas / address.rpartition("/")[2]).read_text())

    schema = read(f"bom-{bill['specVersion']}.SNAPSHOT.schema.json")
    jsonschema_rs.validator_for(schema, retriever=read).validate(bill)


def test_an_audit_without_a_database_says_so_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    lock = tmp_path / "one.lock"
    lock.write_text(read_lock(LOCK)["six"].text)
    assert audit(lock) == NOT_ASKED
    assert "NOT AUDITED" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("packages", "code"),
    [
        ([{"name": "a", "version": "1", "vulns": []}], 0),
        ([{"name": "a", "version": "1", "vulns": [{"id": "CVE-1"}]}], FOUND),
        (
            [{"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "?"}],
            NOT_ASKED,
        ),
        ([], NOT_ASKED),
    ],
)
def test_a_package_that_nobody_was_asked_about_is_not_called_harmless(
    packages: list[dict[str, Any]], code: int
) -> None:
    assert judge(json.dumps({"dependencies": packages, "fixes": []})).code == code
    assert judge("Traceback").code == NOT_ASKED
