"""What cannot be accepted in a file is refused with the file, the line and the reason."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from windlass.workflows.expansion import expand, expand_file
from windlass.workflows.nodes import Misdescribed
from windlass.workflows.reading import DEPTH_LIMIT, SIZE_LIMIT, read_text


class Bad(NamedTuple):
    """A file, the line that is wrong in it, and words of the reason."""

    what: str
    text: str
    line: int
    said: tuple[str, ...]
    parameters: Mapping[str, object] = MappingProxyType({})


HEAD = "name: w\njobs:\n"
RUN = "run: ['true']"

# fmt: off
CASES = [
    Bad("a cycle is named", HEAD + f"  a: {{{RUN}, after: c}}\n  b: {{{RUN}, after: a}}\n"
        f"  c: {{{RUN}, after: b}}\n", 3, ("free of cycles", "a → c → b → a")),
    Bad("a cycle through another workflow", HEAD + f"  a: {{{RUN}, after: in}}\n"
        f"  in: {{after: a, workflow: {{name: x, jobs: {{i: {{{RUN}}}}}}}}}\n", 3,
        ("free of cycles", "a → in/i → a")),
    Bad("a job after itself", HEAD + f"  a:\n    {RUN}\n    after: a\n", 5,
        ("other jobs", "its own name a")),
    Bad("a matrix after itself", HEAD + f"  a:\n    {RUN}\n    count: 3\n    after: a\n", 6,
        ("other jobs",)),
    Bad("an unknown name", HEAD + f"  build: {{{RUN}}}\n  b:\n    {RUN}\n    after:\n"
        "    - build\n    - biuld\n", 8, ("jobs.b.after", "build", "got biuld")),
    Bad("a name given twice", HEAD + f"  a: {{{RUN}}}\n  a: {{{RUN}}}\n", 4,
        ("named once (first on line 3)",)),
    Bad("names that parameters make the same",
        "name: w\nparameters: {x: {}}\njobs:\n" + f"  a: {{{RUN}}}\n  ${{{{ parameters.x }}}}: "
        f"{{{RUN}}}\n", 5, ("duplicate names", "got a"), {"x": "a"}),
    Bad("an unknown field", HEAD + f"  a:\n    {RUN}\n    retrys: 3\n", 5,
        ("jobs.a", "retries", "unknown key retrys")),
    Bad("an unknown field of the workflow", f"name: w\nfailfast: true\njobs: {{a: {{{RUN}}}}}\n",
        2, ("fail_fast", "unknown key failfast")),
    Bad("no name", "jobs: {}\n", 1, ("name to be given",)),
    Bad("no jobs", "name: w\n", 1, ("jobs to be given",)),
    Bad("a job that does nothing", HEAD + "  a:\n    timeout: 5\n", 4,
        ("jobs.a", "run, task or workflow")),
    Bad("two things to do", HEAD + f"  a:\n    {RUN}\n    task: shell\n", 5,
        ("without task beside run",)),
    Bad("env for another task", HEAD + "  a:\n    task: python\n    env: {A: b}\n", 5,
        ("env for run",)),
    Bad("a number that is text", HEAD + f"  a:\n    {RUN}\n    retries: many\n", 5,
        ("jobs.a.retries", "a whole number", "got many")),
    Bad("a command that is a mapping", HEAD + "  a:\n    run: {make: test}\n", 4,
        ("jobs.a.run", "text or a list", "a mapping")),
    Bad("a bad duration", HEAD + f"  a:\n    {RUN}\n    timeout: soon\n", 5,
        ("jobs.a.timeout", "a duration", "got soon")),
    Bad("too many retries", HEAD + f"  a:\n    {RUN}\n    retries: 5000\n", 5,
        ("jobs.a.retries", "from 0 to 1000")),
    Bad("a bad requirement", HEAD + f"  a:\n    {RUN}\n    requires: [memory≥4]\n", 5,
        ("requires", "KEY OPERATOR VALUE")),
    Bad("a bad priority", HEAD + f"  a:\n    {RUN}\n    priority: urgent\n", 5,
        ("priority", "high, medium, low", "got urgent")),
    Bad("a bad word of a command", HEAD + '  a:\n    run:\n    - echo\n    - "a\\0b"\n', 6,
        ("free of NUL",)),
    Bad("a variable of the worker's", HEAD + f"  a:\n    {RUN}\n    env:\n      A: b\n"
        "      WINDLASS_JOB: 7\n", 7, ("jobs.a.env.WINDLASS_JOB",)),
    Bad("an artifact outside", HEAD + f"  a:\n    {RUN}\n    artifacts: [../x]\n", 5,
        ("artifacts[0]", "below the working directory")),
    Bad("a name with a slash", HEAD + f"  a/b: {{{RUN}}}\n", 3, ("without [ ] / and *",)),
    Bad("a name that is too long", HEAD + f"  a:\n    {RUN}\n    matrix: {{x: [{'y' * 200}]}}\n",
        4, ("jobs.a.name", "1 to 200 characters")),
    Bad("an impossible id", HEAD + f"  a:\n    {RUN}\n    after: [0]\n", 5, ("id of an existing",)),
    Bad("an input of a job it does not wait for", HEAD + f"  a: {{{RUN}}}\n  b:\n    {RUN}\n"
        "    inputs:\n    - {artifact: x, job: a}\n", 7,
        ("jobs.b.inputs[0].job", "one job that this one waits for", "got a")),
    Bad("an input of many jobs", HEAD + f"  a: {{{RUN}, count: 2}}\n  b:\n    {RUN}\n"
        "    after: a\n    inputs: [{artifact: x, job: a}]\n", 7, ("one job",)),
    Bad("an input of nobody", HEAD + f"  a:\n    {RUN}\n    inputs: [{{artifact: x}}]\n", 5,
        ("jobs.a.inputs[0].job", "the id of a job")),
    # The workflow itself
    Bad("a bad delay of a reaction", "name: w\non_failure:\n- retry:\n    delays:\n    - 5m\n"
        "    - 1y\njobs: {}\n", 6, ("on_failure[0].retry.delays[1]", "a duration", "got 1y")),
    Bad("an unknown reaction", "name: w\non_end:\n- retry: {delays: [1s]}\n- mail: me\njobs: {}\n",
        4, ("on_end[1].mail", "submit, parameters, webhook, retry")),
    Bad("two reactions in one", "name: w\non_end:\n- retry: {delays: [1s]}\n  submit: t\n"
        "jobs: {}\n", 3, ("on_end[0]", "exactly one of submit, webhook and retry")),
    Bad("a webhook without secret", "name: w\non_success:\n- webhook:\n    url: http://host/x\n"
        "jobs: {}\n", 4, ("on_success[0].webhook.secret",)),
    Bad("a bad job of a reaction", "name: w\non_success:\n- submit:\n  - task: shell\n"
        "    args: {argv: ['true']}\n  - task: shell\n    args: {argv: []}\njobs: {}\n", 7,
        ("on_success[0].submit[1].args.argv", "words")),
    Bad("a bad priority of the workflow", "name: w\npriority: urgent\njobs: {}\n", 2,
        ("priority", "high, medium, low", "got urgent")),
    Bad("a bad timeout of the workflow", "name: w\ntimeout: soon\njobs:\n  a:\n    run: x\n", 2,
        ("timeout", "or none", "got soon")),
    Bad("a name that is too long for a workflow", f"name: {'n' * 201}\njobs: {{}}\n", 1,
        ("name", "1 to 200 characters")),
    # Parameters
    Bad("a missing parameter", "name: w\nparameters:\n  v: {type: integer}\njobs: {}\n", 3,
        ("parameters.v", "given (a whole number)", "got nothing")),
    Bad("a parameter of the wrong type", "name: w\nparameters:\n  v: {type: integer}\njobs: {}\n",
        3, ("parameters.v", "a whole number", "got one"), {"v": "one"}),
    Bad("a list for a text", "name: w\nparameters:\n  v: {}\njobs: {}\n", 3,
        ("parameters.v", "text"), {"v": ["x"]}),
    Bad("text that nobody can write", "name: w\nparameters:\n  v: {}\njobs: {}\n", 3,
        ("parameters.v", "lone surrogates"), {"v": "\udcff"}),
    Bad("text that no store keeps", "name: w\nparameters:\n  v: {}\njobs: {}\n", 3,
        ("parameters.v", "NUL"), {"v": "a\0b"}),
    Bad("a boolean for a number", "name: w\nparameters:\n  v: {default: 1}\njobs: {}\n", 3,
        ("parameters.v", "a whole number"), {"v": True}),
    Bad("not one of the choices",
        "name: w\nparameters:\n  v: {choices: [a, b], default: a}\njobs: {}\n", 3,
        ("one of a, b", "got c"), {"v": "c"}),
    Bad("a default that is no choice",
        "name: w\nparameters:\n  v:\n    choices: [a, b]\n    default: c\njobs: {}\n", 5,
        ("parameters.v.default", "one of a, b")),
    Bad("an unknown parameter", "name: w\nparameters: {v: {default: 1}}\njobs: {}\n", 1,
        ("one of v", "unknown key w"), {"w": 1}),
    Bad("a name nobody declared", HEAD + "  a:\n    run:\n    - ${{ parameters.x }}\n", 5,
        ("jobs.a.run[0]", "${{ parameters.x }}")),
    Bad("code", HEAD + "  a:\n    run: ['${{ 1 + 1 }}']\n", 4, ("jobs.a.run[0]", "${{ 1 + 1 }}")),
    Bad("an index without a count", HEAD + "  a:\n    run: ['${{ index }}']\n", 4, ("index",)),
    Bad("a type that shows in the end",
        "name: w\nparameters: {n: {}}\njobs:\n  a:\n    run: ['true']\n"
        "    retries: ${{ parameters.n }}\n", 6, ("jobs.a.retries", "a whole number", "got x"),
        {"n": "x"}),
    # Matrices
    Bad("a matrix of ten million", HEAD + "  a:\n    run: [x]\n    matrix:\n" + "".join(
        f"      {axis}: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n" for axis in "abcdefg"), 6,
        ("jobs.a.matrix", "at most 100000 jobs", "got 10000000")),
    Bad("a count of ten million", HEAD + "  a:\n    run: [x]\n    count: 10000000\n", 5,
        ("jobs.a.count", "from 1 to 100000", "got 10000000")),
    Bad("no jobs at all", HEAD + "  a:\n    run: [x]\n    count: 0\n", 5, ("from 1",)),
    Bad("too many by parameter", "name: w\nparameters: {n: {type: integer}}\njobs:\n"
        "  a: {run: [x], count: '${{ parameters.n }}'}\n", 4, ("got 99999999",), {"n": 99999999}),
    Bad("too many together", HEAD + "".join(
        f"  {name}: {{run: [x], count: 100000}}\n" for name in "abc"), 5,
        ("jobs.c", "at most 250000 jobs")),
    Bad("too many edges", HEAD + "  a: {run: [x], count: 2000}\n  b:\n    run: [x]\n"
        "    count: 2000\n    after: a\n", 7, ("jobs.b.after", "2500000 dependencies")),
    Bad("an empty axis", HEAD + "  a:\n    run: [x]\n    matrix:\n      os: []\n", 6,
        ("matrix.os", "a list of values")),
    Bad("the same job twice", HEAD + "  a:\n    run: [x]\n    matrix: {v: [1, '1']}\n", 5,
        ("duplicate jobs", "[1]")),
    Bad("an axis that is not there", HEAD + "  a:\n    run: [x]\n    matrix:\n      v: [1]\n"
        "      exclude:\n      - {w: 1}\n", 8, ("about v", "got w")),
    Bad("nothing left", HEAD + "  a:\n    run: [x]\n    matrix:\n      v: [1]\n"
        "      exclude: [{v: 1}]\n", 6, ("at least one job",)),
    Bad("half a row", HEAD + "  a:\n    run: [x]\n    matrix: {v: [1], w: [1],\n"
        "      include: [{v: 2}]}\n", 6, ("include", "a value for w")),
    Bad("no axis in common", HEAD + "  a: {run: [x], matrix: {v: [1]}}\n  b:\n    run: [x]\n"
        "    matrix: {w: [1]}\n    after: 'a[*]'\n", 7, ("same values on a common axis",)),
    Bad("no job that agrees", HEAD + "  a: {run: [x], matrix: {v: [1]}}\n  b:\n    run: [x]\n"
        "    matrix: {v: [2]}\n    after: 'a[*]'\n", 7, ("same values on a common axis",)),
    # Workflows inside
    Bad("a file that is not there", HEAD + "  a:\n    workflow: no.yaml\n", 4,
        ("jobs.a.workflow", "readable file", "No such file")),
    Bad("a file anywhere", HEAD + "  a:\n    workflow: /etc/passwd\n", 4, ("relative to this",)),
    Bad("a file that contains itself", HEAD + "  a:\n    workflow: ./bad.yaml\n", 4,
        ("free of recursion", "bad.yaml → bad.yaml")),
    Bad("more than it may say", HEAD + "  a:\n    workflow: x.yaml\n    retries: 2\n", 5,
        ("beside workflow", "got retries")),
    Bad("nothing inside", HEAD + "  a:\n    workflow: {name: x, jobs: {}}\n", 4,
        ("a workflow with jobs",)),
    Bad("what is inside is checked too", HEAD + "  a:\n    workflow:\n      name: x\n"
        "      jobs:\n        b:\n          run: 7\n", 8, ("jobs.b.run", "a list")),
    # YAML
    Bad("a tag", HEAD + "  a: !!python/object/apply:os.system ['true']\n", 3,
        ("free of tags", "os.system")),
    Bad("a tag of one's own", HEAD + "  a: !include other\n", 3, ("free of tags", "!include")),
    Bad("a bomb", "name: w\nlabels:\n  a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"  {b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi",
        strict=True)), 8, ("at most 500000 values",)),
    Bad("an alias inside itself", "name: w\njobs: &a\n  b: *a\n", 3, ("inside itself",)),
    Bad("an unknown alias", "name: w\njobs: *nothing\n", 2, ("nothing",)),
    Bad("very deep", "name: w\njobs:\n  " + "[" * (DEPTH_LIMIT + 10), 3, ("nested at most",)),
    Bad("broken", "name: w\njobs: {a: [}\n", 2, ("valid YAML",)),
    Bad("tabs", "name: w\njobs:\n\ta: 1\n", 3, ("valid YAML",)),
    Bad("two documents", "name: w\njobs: {}\n---\nname: x\n", 3, ("one document",)),
    Bad("an empty file", "# nothing\n", 1, ("an empty file",)),
    Bad("a list", "- name: w\n", 1, ("a mapping",)),
    Bad("a list as a name", "name: w\n? [a, b]\n: c\n", 2, ("named by text",)),
]
# fmt: on


@pytest.mark.parametrize("bad", CASES, ids=lambda bad: bad.what)
def test_it_is_refused_with_its_place(bad: Bad, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(bad.text)
    with pytest.raises(Misdescribed) as caught:
        expand_file(file, bad.parameters)
    message = str(caught.value)
    assert message.startswith(f"{file}:{bad.line}: "), message
    for words in bad.said:
        assert words in message
    assert caught.value.details()["line"] == bad.line


def test_what_came_as_data_is_refused_by_its_field() -> None:
    with pytest.raises(Misdescribed) as caught:
        expand({"name": "w", "jobs": {"a": {"run": ["x"], "retries": "many"}}}, {})
    assert str(caught.value) == "expected jobs.a.retries to be a whole number, got many"
    with pytest.raises(Misdescribed, match="not the name of a file"):
        expand({"name": "w", "jobs": {"a": {"workflow": "x.yaml"}}}, {})


def test_a_file_of_json_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text('{\n  "name": "w",\n  "jobs": {,}\n}\n')
    with pytest.raises(Misdescribed, match=r"bad.json:3: .*valid JSON"):
        expand_file(file, {})
    file.write_text("[" * 100_000)
    with pytest.raises(Misdescribed, match="nested at most"):
        expand_file(file, {})


def test_files_have_a_size() -> None:
    with pytest.raises(Misdescribed, match=f"at most {SIZE_LIMIT} bytes"):
        read_text(b"#" * (SIZE_LIMIT + 1), "big.yaml")
    with pytest.raises(Misdescribed, match=r"x.yaml:2: expected the file to be UTF-8"):
        read_text(b"name: w\nx: \xff\n", "x.yaml")


def test_files_inside_of_each_other_have_an_end(tmp_path: Path) -> None:
    for number in range(20):
        inner = f"jobs: {{a: {{workflow: {number + 1}.yaml}}}}"
        (tmp_path / f"{number}.yaml").write_text(f"name: w\n{inner}\n")
    with pytest.raises(Misdescribed, match="at most 10 levels of nested workflows"):
        expand_file(tmp_path / "0.yaml", {})


def test_many_files_inside_of_each_other_are_counted_before_they_are_made(tmp_path: Path) -> None:
    for number in range(4):
        inner = f"jobs: {{a: {{count: 1000, workflow: {number + 1}.yaml}}}}"
        (tmp_path / f"{number}.yaml").write_text(f"name: w\n{inner}\n")
    (tmp_path / "4.yaml").write_text("name: w\njobs: {a: {run: [x]}}\n")
    with pytest.raises(Misdescribed, match=r"2\.yaml:2: .*at most 250000 jobs"):
        expand_file(tmp_path / "0.yaml", {})


def test_text_that_parameters_fill_in_has_a_limit() -> None:
    """10,000 uses of a default of 100 kB would be a gigabyte."""
    description = {
        "name": "w",
        "parameters": {"text": {"default": "x" * 100_000}},
        "jobs": {
            "a": {
                "matrix": {"n": list(range(10_000))},
                "run": ["echo", "${{ parameters.text }}", "${{ matrix.n }}"],
            }
        },
    }
    with pytest.raises(Misdescribed, match="within the 64 MiB that parameters may expand to"):
        expand(description, {})


def test_lists_that_parameters_fill_in_count_with_all_they_hold() -> None:
    description = {
        "name": "w",
        "parameters": {"words": {"type": "list", "default": ["x" * 1_000] * 100}},
        "jobs": {
            "a": {
                "matrix": {"n": list(range(10_000))},
                "run": "${{ parameters.words }}",
                "labels": {"n": "${{ matrix.n }}"},
            }
        },
    }
    with pytest.raises(Misdescribed, match="within the 64 MiB"):
        expand(description, {})


def test_nested_workflows_are_counted() -> None:
    """Eight levels of four are 65,536 workflows, each of which takes time to expand."""
    nested: dict[str, object] = {"name": "w", "jobs": {"one": {"run": ["true"]}}}
    for _ in range(8):
        nested = {"name": "w", "jobs": {"part": {"count": 4, "workflow": nested}}}
    with pytest.raises(Misdescribed, match="at most 10000 nested workflows"):
        expand(nested, {})
