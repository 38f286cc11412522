"""Workflow files, templates, jobs, reactions, settings, and the files of the fuzzing pipeline."""

import gzip
import tempfile
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.parsers.of_values import JSON_ERRORS
from tests.parsers.parser import Parser, of_text
from windlass.cli.options.configuration import load_settings
from windlass.domain.config import Config
from windlass.domain.job.job import JobSpec, decode_spec
from windlass.domain.job.validation import Validator
from windlass.domain.tasks.built_in import KINDS
from windlass.domain.values.json_schema import check_schema, find_mismatch
from windlass.messages.reactions import conceal, parse_reactions
from windlass.worker.agent.environment import is_variable_name, parse_env_file
from windlass.workflows.conditions import Condition
from windlass.workflows.expansion import expand_tree
from windlass.workflows.files import NoFiles
from windlass.workflows.nodes import NOWHERE, Misdescribed, Node
from windlass.workflows.reading import read_text
from windlass.workflows.substitution import Budget, Scope, substitute_text
from windlass_fuzz.config.solver_file import parse_solver
from windlass_fuzz.coverage.changes import hunks_of
from windlass_fuzz.coverage.coverage_map import decode as decode_map
from windlass_fuzz.coverage.coverage_map import encode as encode_map
from windlass_fuzz.coverage.functions import functions_in
from windlass_fuzz.engines.signature import normalise, title_of
from windlass_fuzz.processes.runner import ExitStatus
from windlass_fuzz.roles.coverage import parse_shard
from windlass_fuzz.seeds.archives import read_archive
from windlass_fuzz.seeds.dictionaries import format_dictionary, parse_dictionary
from windlass_fuzz.seeds.limits import SeedFolder, SeedLimits
from windlass_fuzz.state.documents import LEASES, QUEUE, SCHEDULE, STATE, Codec, MalformedFile

VALIDATOR: Final = Validator(Config(), {kind.name: kind for kind in KINDS})
CRASHED: Final = ExitStatus(-6, "exited", 1)
COMMIT: Final = b"0123456789abcdef0123456789abcdef01234567"
WORKFLOW: Final = b"""\
name: release
parameters: {version: {type: text, default: "1"}, shards: {type: integer, default: 2}}
jobs:
  build: {run: [make, "${{ parameters.version }}"], timeout: 5m, retries: 2}
  test:
    run: [test, "${{ matrix.os }}-${{ index }}"]
    matrix: {os: [a, b]}
    after: [build]
  all: {run: [echo], after: ["test[*]"], requires: ["memory>=1GiB"]}
"""
MAPS: Final = tuple(
    gzip.compress(b'{"commit":"c","tests":["t"],"functions":{' + functions + b"}}", mtime=0)
    for functions in (b'"a:b:1":[0]', b'"a:b:1":[5]', b'"ab":[0]', b'"\xff":[]')
)
SOLVER: Final = b"""\
name: s
repository: /r
build: {production: [[make]], coverage: [[make]]}
binaries: [solver]
engine: {name: command}
"""


def _workflow(file: str) -> Any:
    def read(data: bytes) -> None:
        expand_tree(read_text(data, file), {}, NoFiles())

    return read


def _expression(text: str) -> None:
    names = {"parameters.x": Node("1", NOWHERE, "1"), "index": Node(3, NOWHERE, "3")}
    shown = substitute_text(text, Scope(names, Budget()), NOWHERE, "run")
    assert "${{" in shown or "${{" not in text or len(shown) <= len(text)


def _condition(text: str) -> None:
    """A condition is true or false, and the same in parentheses."""
    names = {"parameters.x": Node("1", NOWHERE, "1"), "index": Node(3, NOWHERE, "3")}
    scope = Scope(names, Budget())
    value = Condition(Node(text, NOWHERE, text), "if").holds(scope)
    if "${{" not in text and len(text) < 900 and "(" not in text:
        inside = Condition(Node(f"({text})", NOWHERE, f"({text})"), "if")
        assert inside.holds(scope) == value


def _job(data: bytes) -> None:
    """A job that is taken is read back from the store as it was, and taken again."""
    spec = msgspec.json.decode(data, type=JobSpec)
    valid = VALIDATOR.validate(spec)
    again = VALIDATOR.validate(decode_spec(valid.body))
    assert again.body == valid.body


def _reactions(data: bytes) -> None:
    values = msgspec.json.decode(data, type=list[dict[str, Any]])
    parse_reactions(values, "on_end")
    conceal(values)


def _schema(data: bytes) -> None:
    """A schema that is taken can be compared with anything."""
    schema = msgspec.json.decode(data)
    check_schema(schema)
    for value in (None, True, 1, 2.5, "text", [1, ["a"]], {"a": {"b": None}}, schema):
        find_mismatch(schema, value, "answer")


def _settings(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".toml") as file:
        file.write(data)
        file.flush()
        _ = load_settings({}, {}, Path(file.name)).config


def _env_file(text: str) -> None:
    """Every name can be set in an environment, and what is read can be written and read again."""
    for name, value in parse_env_file(text):
        assert is_variable_name(name)
        assert value is None or "\0" not in value
        if value is not None and "\n" not in value and "'" not in value and "\r" not in value:
            assert parse_env_file(f"{name}='{value}'") == [(name, value)]


def _state_file(codec: Codec[Any]) -> Any:
    def read(data: bytes) -> None:
        value, version = codec.decode(data, {"windlass-seq": "7"})
        body, attributes = codec.encode(value, version.next("n"))
        assert codec.decode(body, attributes) == (value, version.next("n"))

    return read


def _attributes(text: str) -> None:
    SCHEDULE.decode(b"[]", dict(part.partition("=")[::2] for part in text.split(";")))


def _coverage_map(data: bytes) -> None:
    found = decode_map(data)
    assert decode_map(encode_map(found)) == found


def _dictionary(data: bytes) -> None:
    words = parse_dictionary(data)
    assert parse_dictionary(format_dictionary(words)) == words


def _archive(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "corpus.zip")
        path.write_bytes(data)
        into = SeedFolder(Path(folder, "inputs"), SeedLimits(100, 4_096, 65_536))
        read_archive(path, into)
        sizes = [found.stat().st_size for found in into.folder.iterdir()]
        assert len(sizes) <= 100
        assert sum(sizes) <= 65_536


def _report(text: str) -> None:
    assert "\n" not in title_of(text, CRASHED)
    normalise(text)


ZIP: Final = (
    b"PK\x03\x04\x14\0\0\0\0\0\0\0!\0\xb7\xef\xdc\x83\x01\0\0\0\x01\0\0\0\x01\0\0\0a1"
    b"PK\x01\x02\x14\x03\x14\0\0\0\0\0\0\0!\0\xb7\xef\xdc\x83\x01\0\0\0\x01\0\0\0\x01\0\0\0"
    b"\0\0\0\0\0\0\0\0\x80\x01\0\0\0\0aPK\x05\x06\0\0\0\0\x01\0\x01\0/\0\0\0 \0\0\0\0\0"
)

PARSERS: Final = (
    Parser("dictionary of words", _dictionary, (b'# x\nkw@1="a\\x00"\n"let" # y\n', b'"\\')),
    Parser("archive of seeds", _archive, (ZIP, ZIP[:60]), floor=1.0),
    Parser(
        "workflow as YAML",
        _workflow("w.yaml"),
        (WORKFLOW, b"name: w\njobs: {a: &x {run: [echo]}, b: {<<: *x}}\n", b"a: &a [*a]"),
        (Misdescribed,),
        floor=1.0,
    ),
    Parser(
        "workflow as JSON",
        _workflow("w.json"),
        (b'{"name":"w","jobs":{"a":{"run":["echo","\\ud83d\\ude00"],"array":3}}}',),
        (Misdescribed,),
        floor=1.0,
    ),
    Parser(
        "template expression",
        of_text(_expression),
        (b"a ${{ parameters.x }} b", b"$${{ x }}", b"${{index}}", b"${{ }}", b"${{ matrix.v"),
    ),
    Parser(
        "condition",
        of_text(_condition),
        (
            b"parameters.x == '1' and not index >= 2",
            b"(true || !false) && index",
            b"((",
            b"1 < 'a'",
        ),
    ),
    Parser(
        "job",
        _job,
        (
            b'{"task":"shell","args":{"argv":["a"],"env":{"A":"b"},"inputs":[{"job":1,"artifact":"x"}]}}',
            b'{"task":"ffmpeg","args":{"inputs":["a.mp4"],"output":"b.mp4","options":["-c:v","h264"]}}',
            b'{"task":"x","timeout":"5m","retries":3,"requires":["a==1"],"rate":{"key":"k","per":"1m","max":2}}',
            b'{"task":"x","not_before":"2030-01-01T00:00:00Z","labels":{"a":"b"},"after":[1,"n"]}',
            b'{"task":"gstreamer","args":{"pipeline":["videotestsrc","!","fakesink"]}}',
        ),
        JSON_ERRORS,
    ),
    Parser(
        "schema of a question",
        _schema,
        (
            b'{"type":"object","properties":{"a":{"type":["integer","null"],"minimum":1}},"required":["a"]}',
            b'{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}}}',
            b'{"type":"array","prefixItems":[{"enum":[1,"x"]}],"items":{"maxLength":3},"maxItems":4}',
            b'{"additionalProperties":false,"title":"t","const":{"a":1}}',
        ),
        JSON_ERRORS,
    ),
    Parser(
        "reactions",
        _reactions,
        (
            b'[{"webhook":{"url":"https://a.b/","secret":"x"}}]',
            b'[{"retry":{"delays":["1m",5]}}]',
            b'[{"submit":[{"task":"x"}]}]',
        ),
        JSON_ERRORS,
    ),
    Parser(
        "settings file",  # the operator's own; tomllib takes longer for each part of a key
        _settings,
        (
            b'[heartbeat]\ninterval = "10s"\n',
            b"retention.jobs = 'never'\n",
            b'"a.b" = 1\n[x.y]\n',
            b"a = " + b"[" * 3_000,
        ),
        floor=2.0,
    ),
    Parser(
        "solver file as YAML",
        lambda data: parse_solver(data, Path("s.yaml")),
        (SOLVER, b"name: &a [*a]\n", b"a: 2020-01-01\n"),
    ),
    Parser(
        "solver file as TOML",
        lambda data: parse_solver(data, Path("s.toml")),
        (
            b'name = "s"\nrepository = "/r"\nbinaries = ["b"]\n[build]\nproduction = [["make"]]\n',
            b"a = 1979-05-27T07:32:00Z\n",
        ),
    ),
    Parser(
        "state file",
        _state_file(STATE),
        (b'{"last_checked_commit":"' + COMMIT + b'","checked_at_ms":5,"version":{"seq":3}}',),
        (MalformedFile,),
    ),
    Parser(
        "build queue",
        _state_file(QUEUE),
        (b'{"queue":["' + COMMIT + b'"],"built":[],"failed":[],"seen":["a"],"x":1.5}',),
        (MalformedFile,),
    ),
    Parser(
        "schedule",
        _state_file(SCHEDULE),
        (b'[{"hash":"' + COMMIT + b'","fuzz_count":2,"x":null}]\t \t\n',),
        (MalformedFile,),
    ),
    Parser(
        "schedule's attributes",
        of_text(_attributes),
        (
            b"windlass-seq=12;windlass-nonce=a;Windlass-Recent=a,b",
            b"windlass-seq=" + b"9" * 5_000,
        ),
        (MalformedFile,),
    ),
    Parser(
        "leases",
        _state_file(LEASES),
        (
            b'{"build":{"a":{"holder":"h","token":"t","until_ms":5}},"version":{"seq":1,"nonce":"n"}}',
        ),
        (MalformedFile,),
    ),
    Parser("coverage map", _coverage_map, MAPS, most=4_096),
    Parser(
        "crash report",
        of_text(_report),
        (
            b"==1==ERROR: AddressSanitizer: heap-use-after-free on x\n #0 0x1 in f(int) a.cpp:3\n",
            b"a.cpp:1:2: runtime error: signed integer overflow: 1 + 2\n",
            b"/x/a.cpp:12: void f(): Assertion `x > 0' failed.\n",
            b"terminate called after throwing an instance of 'std::x'\n  what():  no\n",
            b"Fatal failure within void f() at a.cpp:3\nCheck failure\n x\n",
        ),
    ),
    Parser(
        "C++ source",
        of_text(functions_in),
        (
            b"namespace a { class B { int f(int x) { return '{'; } }; }\nint B::g() : x{1} {}\n",
            b'R"x({)x" /* { */ "\\"{" // {\n#define X {\\\n {\n',
            b"template<class T> a<T>::~b(){}\n",
        ),
        floor=1.0,
    ),
    Parser(
        "diff",
        of_text(hunks_of),
        (b"+++ b/a.cpp\t\n@@ -1,2 +3,4 @@ int f()\n+x\n", b"+++ /dev/null\n@@ -1 +0,0 @@\n"),
    ),
    Parser(
        "env file",
        of_text(_env_file),
        (
            b'# shop\nexport A=1\nB=\'a b\' \n\nC="x\\n\\"y\\""\r\nD\nE=a#b=c\n',
            b'A="\\x"\n',
            b"A='a' b\n",
            b"1A=2\n=\n",
        ),
    ),
    Parser("shard", of_text(parse_shard), (b"2/4", "²/4".encode())),
)
