"""A build that cannot be fuzzed is told to people: in `status`, by webhook, by e-mail."""

import asyncio
import email
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from pathlib import Path
from typing import cast

import pytest
import trustme

from tests.fuzzing.engines.test_engine_pipelines import AFL, LIBFUZZER, SOURCE, PipelineWorld
from tests.fuzzing.roles.test_run_health import REFUSES
from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.scripted_solver import FINE, World
from tests.fuzzing.trackers.servers import SECRET, QuickClock, Receiver, running
from tests.support.debian import missing_reason
from tests.support.running import run
from windlass.clock import RealClock
from windlass.domain.values.errors import InvalidInput
from windlass_fuzz.alarms.sender import alarm_of, deliver
from windlass_fuzz.config.alarm_settings import AlarmSettings, MailSettings
from windlass_fuzz.config.solver_file import parse_solver
from windlass_fuzz.findings.untriaged import count_untriaged
from windlass_fuzz.roles.builder import Builder
from windlass_fuzz.roles.status import read_status

INSTRUMENTED = f"{LIBFUZZER.production} -o build/target target.c"
COUNTING = f"{LIBFUZZER.coverage} -o build/target target.c"
NOWHERE = """
alarms:
  webhook: http://127.0.0.1:9/x
  mail: {to: [a@b.c], from: a@b.c, server: "127.0.0.1:9", security: none}
"""
WHY = "does not answer the only test"


class MailServer:
    """Takes e-mails as any server does, and keeps them and all that was said in the clear."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.mails: list[EmailMessage] = []
        self.said: list[tuple[bool, bytes]] = []  # whether it was encrypted, and a line
        self.port = 0
        self._context = context

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def say(line: str) -> None:
            writer.write(line.encode() + b"\r\n")
            await writer.drain()

        secure = False
        await say("220 here")
        while line := await reader.readline():
            word = line[:4].upper()
            self.said.append((secure, line))
            if word == b"EHLO":
                offers = "AUTH PLAIN" if secure or self._context is None else "STARTTLS"
                await say(f"250-here\r\n250 {offers}")
                continue
            if word == b"STAR" and self._context is not None:
                await say("220 go on")
                await writer.start_tls(self._context)
                secure = True
                continue
            if word == b"AUTH":
                await say("235 welcome")
                continue
            if word == b"DATA":
                await say("354 go on")
                text = await reader.readuntil(b"\r\n.\r\n")
                self.mails.append(cast(EmailMessage, email.message_from_bytes(text)))
            await say("221 bye" if word == b"QUIT" else "250 fine")
            if word == b"QUIT":
                break
        writer.close()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["MailServer"]:
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self


def alarms_to(receiver: Receiver, mails: MailServer) -> str:
    return (
        f"alarms:\n  webhook: {receiver.address}/hook\n"
        f"  mail: {{to: [team@example.org, b@example.org], from: fuzz@example.org, "
        f"server: '127.0.0.1:{mails.port}', security: none}}\nhealth: {{runs: 2}}"
    )


def test_alarms_reach_a_webhook_and_a_mailbox_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_ALARMS_SECRET", SECRET)

    async def scenario() -> None:
        receiver = Receiver()
        async with running(receiver), MailServer().running() as mails:
            world = World(tmp_path, more=alarms_to(receiver, mails))
            commit = world.commit("wrong flag", solver_sh=REFUSES)
            await world.build_and_schedule(commit)
            assert (await world.fuzz(budget_ms=1_000)).outcome == "unhealthy"
            assert (await world.fuzz(budget_ms=1_000)).marked_bad
            told = list(receiver.deliveries.values())
            assert [(one["commit"], one["runs"], one["given_up"]) for one in told] == [
                (commit, 0, False), (commit, 1, False), (commit, 2, True),
            ]  # fmt: skip
            assert WHY in told[0]["why"]
            subjects = [one["Subject"] for one in mails.mails]
            assert subjects == [
                f"scripted: {commit[:12]} cannot be fuzzed",
                f"scripted: {commit[:12]} cannot be fuzzed",
                f"scripted: {commit[:12]} is given up",
            ]
            assert mails.mails[0]["To"] == "team@example.org, b@example.org"
            assert WHY in mails.mails[0].as_string()
            assert "Its last run did nothing." in mails.mails[1].as_string()
            assert "Its last 2 runs did nothing." in mails.mails[2].as_string()

    run(scenario())


@pytest.mark.parametrize("encrypted", [True, False])
def test_passwords_travel_encrypted_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encrypted: bool
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    monkeypatch.setenv("WINDLASS_MAIL_PASSWORD", "made-up")
    said: list[str] = []

    async def scenario() -> MailServer:
        async with MailServer(context if encrypted else None).running() as mails:
            mail = MailSettings(
                to=("a@b.c",), sender="d@e.f", server=f"127.0.0.1:{mails.port}", user="fuzzing"
            )
            alarm = alarm_of("toy", "c" * 40, "line\nBcc: x@y.z", 1, 0)
            said.append(await deliver("mail", alarm, AlarmSettings(mail=mail), RealClock()))
            return mails

    mails = run(scenario())
    assert (len(mails.mails), said != [""]) == ((1, False) if encrypted else (0, True))
    in_clear = b"".join(line for secure, line in mails.said if not secure)
    assert b"AUTH" not in in_clear
    assert any(line.startswith(b"AUTH") for secure, line in mails.said if secure) is encrypted


def test_an_alarm_that_reaches_nobody_changes_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, more=NOWHERE)
    commit = world.commit("wrong flag", solver_sh=REFUSES)
    said: list[str] = []
    run(world.enqueue(commit))
    builder = Builder(world.solver, world.pipeline, world.work("builder"), said.append)
    report = run(builder.run_once())
    assert (report.outcome, WHY in report.alarm) == ("built", True)
    assert any("set WINDLASS_ALARMS_SECRET" in line for line in said)
    assert "the alarm was not mailed: 127.0.0.1:9: Connection refused" in said


def test_a_better_build_ends_the_alarm_and_a_commit_that_left_is_not_shown(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("wrong flag", solver_sh=REFUSES)
    run(world.enqueue(commit))
    assert WHY in run(world.build()).alarm
    assert [one.commit for one in run(read_status(world.pipeline)).unhealthy] == [commit]
    run(world.pipeline.queue.update(lambda queue: queue._replace(built=())))
    assert run(read_status(world.pipeline)).unhealthy == []
    run(world.pipeline.queue.update(lambda queue: queue._replace(built=(commit,))))
    (tmp_path / "repository" / "solver.sh").write_text(FINE)
    world.git("commit", "--quiet", "--all", "--amend", "--no-edit")
    fixed = world.git("rev-parse", "HEAD")
    health = run(world.pipeline.health.read()).commits[commit]
    run(world.pipeline.health.update(lambda known: known._replace(commits={fixed: health})))
    Commands(world).ask("builder", "make", "scripted", fixed)
    assert run(world.pipeline.health.read()).commits == {}


def test_a_single_step_tries_the_build_too(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("wrong flag", solver_sh=REFUSES)
    assert WHY in Commands(world).ask("builder", "make", "scripted", commit)["alarm"]
    assert commit in run(world.pipeline.health.read()).commits


@pytest.mark.skipif(missing_reason("clang") is not None, reason=missing_reason("clang") or "")
@pytest.mark.parametrize(
    ("production", "coverage", "words"),
    [
        (INSTRUMENTED, COUNTING, ""),
        ("clang -c -o t.o target.c; clang -fsanitize=fuzzer -o build/target t.o", COUNTING,
         "Is the code instrumented for coverage?"),
        (INSTRUMENTED, "clang -fsanitize=fuzzer -o build/target target.c", "writes no counts"),
    ],
    ids=["fine", "not instrumented", "without counters"],
)  # fmt: skip
def test_builds_that_count_no_coverage_raise_an_alarm(
    tmp_path: Path, production: str, coverage: str, words: str
) -> None:
    world = PipelineWorld(tmp_path)
    world.kind = LIBFUZZER
    script = (
        "#!/bin/sh\nset -e\nmkdir -p build\n"
        f'if [ "$1" = coverage ]; then {coverage}; else {production}; fi\n'
    )
    commit = world.commit("one", **{"target.c": SOURCE, "build.sh": script, "tests/a.txt": "n12"})
    run(world.enqueue(commit))
    report = run(world.build())
    assert report.outcome == "built", report.why
    assert (words in report.alarm) if words else not report.alarm, report.alarm


@pytest.mark.skipif(missing_reason("clang") is not None, reason=missing_reason("clang") or "")
def test_a_crash_at_once_is_no_alarm_but_a_first_finding(tmp_path: Path) -> None:
    world = PipelineWorld(tmp_path)
    world.kind = LIBFUZZER
    compiled = f"if [ $1 = coverage ]; then {COUNTING}; else {INSTRUMENTED}; fi"
    script = f"#!/bin/sh\nset -e\nmkdir -p build\n{compiled}\n"
    # The driver's own counts are lost in a long report.
    crash = 'if (!size) { for (int n = 0; n < 9999; n++) puts("a long report"); __builtin_trap(); }'
    source = SOURCE.replace("if (size == 0) return 0;", crash)
    commit = world.commit("one", **{"target.c": source, "build.sh": script, "tests/a.txt": "n12"})
    run(world.enqueue(commit))
    report = run(world.build())
    assert (report.outcome, report.alarm) == ("built", "")
    assert run(count_untriaged(world.pipeline)) == 1


@pytest.mark.skipif(missing_reason("afl-fuzz") is not None, reason="afl++ is missing")
def test_a_build_that_afl_cannot_fuzz_raises_an_alarm(tmp_path: Path) -> None:
    world = PipelineWorld(tmp_path)
    world.kind = AFL
    plain = AFL.build.replace("AFL_QUIET=1 afl-clang-fast", "clang")
    files = {"target.c": SOURCE, "build.sh": plain, "tests/a.txt": "n12"}
    run(world.enqueue(world.commit("plain", **files)))
    assert "cannot be fuzzed" in run(world.build()).alarm


@pytest.mark.parametrize("status", [403, 404, 500])
def test_the_path_of_a_webhook_is_in_no_message(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path of some webhooks is all one needs to use them, and many people read `status`."""
    monkeypatch.setenv("WINDLASS_ALARMS_SECRET", SECRET)

    async def scenario() -> str:
        receiver = Receiver()
        receiver.refuse = status
        async with running(receiver):
            settings = AlarmSettings(webhook=f"{receiver.address}/hook/T0P/s3cret")
            alarm = alarm_of("toy", "c" * 40, WHY, 1, 0)
            return await deliver("webhook", alarm, settings, QuickClock())

    said = run(scenario())
    assert "did not reach the webhook" in said
    assert "s3cret" not in said


@pytest.mark.parametrize(
    "alarms",
    [
        "{webhook: 'file:///etc/passwd'}",
        "{mail: {to: [], from: a@b.c, server: x}}",
        "{mail: {to: ['a@b.c\\nBcc: d@e.f'], from: a@b.c, server: x}}",
        "{mail: {to: [a@b.c], from: nobody, server: x}}",
        "{mail: {to: [a@b.c], from: a@b.c, server: 'x:0'}}",
        "{mail: {to: [a@b.c], from: a@b.c, server: 'x y'}}",
        "{mail: {to: [a@b.c], from: a@b.c, server: x, user: u, security: none}}",
        "{mial: {}}",
    ],
)
def test_settings_that_make_no_sense_are_refused(tmp_path: Path, alarms: str) -> None:
    text = World(tmp_path, more=f"alarms: {alarms}").description
    with pytest.raises(InvalidInput):
        parse_solver(text.encode(), Path("scripted.yaml"))
