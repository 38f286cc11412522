"""Every declared job option appears wherever jobs are described, and means the same there."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from cyclopts import App
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.domain.job.equivalent_texts import evaluated, typed
from tests.site.reference import PAGES
from tests.support.forms import by_form
from windlass.cli.options.job import FLAGS, PLAIN, JobOptions, named_by_flags
from windlass.domain.config import Config
from windlass.domain.explain.equivalents import command_line, option_texts, python_code
from windlass.domain.job.job import (
    KEYWORDS,
    OPTIONS,
    JobOption,
    JobSpec,
    canonical_options,
    decode_spec,
    encode_spec,
    normalise,
)
from windlass.domain.job.json_rules import json_rules
from windlass.domain.job.validation import Validator
from windlass.domain.matching.isolation import MODES, NETWORKS, PULLS
from windlass.domain.values.errors import InvalidInput, UnknownName
from windlass.domain.values.names import did_you_mean
from windlass.messages.jobs import SubmitRequest
from windlass.tasks.task import task
from windlass.workflows.expansion import expand
from windlass.workflows.format import published
from windlass.workflows.nodes import Misdescribed

app = App(help_flags=[])


@app.default
def described(*command: str, job: JobOptions = PLAIN) -> JobSpec:
    return job.request(command)


def by_flags(words: list[str]) -> JobSpec:
    spec: JobSpec = app(["--task", "t", *words], exit_on_error=False, result_action="return_value")
    return spec


def by_keywords(**options: Any) -> JobSpec:
    return JobSpec(task="t", **canonical_options(options))


def by_http(**options: Any) -> JobSpec:
    body = json.dumps({"jobs": [{"task": "t", **options}]})
    (job,) = msgspec.json.decode(body, type=SubmitRequest).jobs
    return normalise(job, "jobs[0]")


def by_file(**options: Any) -> JobSpec:
    _, (job,) = expand({"name": "w", "jobs": {"j": {"task": "t", **options}}}, {})
    return msgspec.structs.replace(job, name=None)


words = st.text("abcdefghij", min_size=1, max_size=8)
seconds = st.integers(1, 100_000)
texts = st.lists(words, min_size=1, max_size=3, unique=True)


@st.composite
def durations(draw: st.DrawFn) -> tuple[Any, str]:
    """A duration as JSON and as a flag, each in some form."""
    number = draw(seconds)
    forms: list[Any] = [number, f"{number}s", f"{number * 1000}ms", str(number)]
    return draw(st.sampled_from(forms)), str(draw(st.sampled_from(forms[1:])))


@st.composite
def moments(draw: st.DrawFn) -> tuple[str, str]:
    """A time in two of its forms."""
    at = datetime.fromtimestamp(draw(st.integers(2_000_000_000, 3_000_000_000)), UTC)
    text = at.isoformat()
    forms = [text, text.replace("+00:00", "Z"), text.replace("+00:00", ".000Z")]
    return draw(st.sampled_from(forms)), draw(st.sampled_from(forms))


def same(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return strategy.map(lambda value: (value, str(value)))


def pairs(strategy: st.SearchStrategy[dict[str, str]]) -> st.SearchStrategy[tuple[Any, Any]]:
    return strategy.map(lambda value: (value, [f"{n}={text}" for n, text in value.items()]))


# A value for each kind of form: as JSON, and the words of the flag.
FORMS: dict[str, st.SearchStrategy[tuple[Any, Any]]] = {
    "text": same(words),
    "high, medium, low or a number": same(st.sampled_from(["high", "low", "+1", "-3"])),
    "JSON": words.map(lambda text: ({"a": text}, json.dumps({"a": text}))),
    "true or false": st.just((True, [])),
    "list": texts.map(lambda some: (some, some)),
    "list of ids and names": st.lists(st.integers(1, 99), min_size=1, max_size=3).map(
        lambda some: (some, [str(one) for one in some])
    ),
    "mapping": pairs(st.dictionaries(words, words, min_size=1, max_size=3)),
    "duration": durations(),
    "duration or none": st.one_of(durations(), st.just(("none", "None"))),
    "duration or never": st.one_of(durations(), st.just(("never", "Never"))),
    "duration or forever": st.one_of(durations(), st.just(("forever", "Forever"))),
    "time": moments(),
    "key, max and per": st.tuples(words, st.integers(1, 99), durations()).map(
        lambda t: ({"key": t[0], "max": t[1], "per": t[2][0]}, f"{t[0]}={t[1]}/{t[2][1]}")
    ),
    "limits by name": st.tuples(st.integers(1, 99), seconds).map(
        lambda t: (
            {"memory": f"{t[0]}MiB", "cpu_time": f"{t[1]}s", "processes": t[0]},
            [f"memory={t[0]}MiB,processes={t[0]}", f"cpu_time={t[1]}"],
        )
    ),
    "failures": st.just((["network", "ValueError"], ["network,ValueError"])),
    "initial, factor, max and jitter": st.tuples(durations(), st.integers(1, 9)).map(
        lambda t: (
            {"initial": 1, "factor": t[1], "max": t[0][0], "jitter": 0.5},
            [f"initial=1s,factor={t[1]}", f"max={t[0][1]},jitter=0.5"],
        )
    ),
    "key and max": st.tuples(words, st.integers(1, 99)).map(
        lambda t: ({"key": t[0], "max": t[1]}, f"{t[0]}={t[1]}")
    ),
}
CLAUSES = texts.map(lambda some: ([f"{one}>=1" for one in some],) * 2)
# Options whose values have a meaning of their own.
CHOICES: dict[str, st.SearchStrategy[tuple[Any, Any]]] = {
    "unblock": st.just(("manual", "manual")),
    "isolation": same(st.sampled_from(["process", "user", "sandbox"])),
    "network": same(st.sampled_from(["host", "none"])),
    "pull": same(st.sampled_from(["missing", "always", "never"])),
    "requires": CLAUSES,
    "prefers": CLAUSES,
    "resources": st.just(({"cpus": "2"}, ["cpus=2"])),
}


@pytest.mark.parametrize("name", sorted(KEYWORDS - {"task"}))
@settings(max_examples=by_form(3, 30), deadline=None)
@given(data=st.data())
def test_an_option_means_the_same_wherever_it_is_given(name: str, data: st.DataObject) -> None:
    option = OPTIONS[name]
    values = CHOICES.get(name, FORMS.get(option.form.name, st.nothing()))
    if option.bounds is not None:
        values = same(st.integers(max(1, option.bounds[0]), min(100, option.bounds[1])))
    value, flag = data.draw(values)
    spec = by_keywords(**{name: value})
    assert getattr(spec, name) != option.default
    assert by_http(**{name: value}) == spec
    assert encode_spec(by_http(**{name: value})) == encode_spec(spec)
    assert encode_spec(decode_spec(encode_spec(spec))) == encode_spec(spec)
    if option.flag is not None:
        words = [word for one in flag for word in (option.flag, one)]
        if isinstance(flag, str):
            words = [option.flag, flag]
        assert by_flags(words or [option.flag]) == spec
    assert option_texts(spec).keys() == {name} - {"args"}
    assert typed(command_line(spec)) == spec
    assert evaluated(python_code(spec)) == spec
    if option.in_files and name not in ("after", "after_any"):
        assert by_file(**{name: value}) == spec


def test_every_option_is_in_the_help_the_schemas_and_the_reference(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = App(name="x")
    shown.command(described, name="submit")
    shown(["submit", "--help"], exit_on_error=False, result_action="return_value")
    help_text = capsys.readouterr().out
    http = msgspec.json.schema_components([SubmitRequest])[1]["JobSpec"]["properties"]
    files = published()["$defs"]["JobFile"]["properties"]
    page = PAGES["job.md"]()
    for name, option in OPTIONS.items():
        assert option.flag is None or f" {option.flag} " in help_text, name
        assert http[name]["description"] == option.help
        assert not option.in_files or files[name]["description"] == option.help
        assert f"| `{name}` | " in page
    assert set(http) == set(OPTIONS)


def test_the_choices_of_isolation_are_those_that_matching_knows() -> None:
    for name, known in (("isolation", MODES), ("network", NETWORKS), ("pull", PULLS)):
        literal, none = get_args(OPTIONS[name].type)
        assert (get_args(literal), none) == (known, type(None))


def test_functions_take_the_options_of_jobs() -> None:
    @task(timeout="90s", labels={"a": "b"}, requires="gpus>=1")
    def work() -> None: ...

    made = work.defaults
    assert made == JobSpec(task="python", timeout=90, labels={"a": "b"}, requires=("gpus>=1",))
    with pytest.raises(UnknownName, match=r"unknown job option '?retrys'?; did you mean retries\?"):
        task(retrys=3)  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match="expected timeout to be a duration such as"):
        task(timeout="soon")


def test_errors_name_the_option_as_it_was_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="expected --not-before to be a time such as"):
        by_flags(["--not-before", "soon"])
    with pytest.raises(InvalidInput, match=r"expected jobs\[0\]\.timeout to be a duration"):
        by_http(timeout="soon")
    with pytest.raises(Misdescribed, match=r"expected jobs\.j\.timeout to be a duration"):
        by_file(timeout="soon")
    with pytest.raises(
        Misdescribed, match=r"unknown key '?timout'? in jobs\.j; did you mean timeout"
    ):
        by_file(timout="5m")
    with pytest.raises(InvalidInput, match="expected --retries to be an integer"), named_by_flags():
        Validator(Config()).validate(JobSpec(task="t", retries=-1), "jobs[0]")
    assert FLAGS["retries"].flag == "--retries"


@pytest.mark.parametrize("option", [o for o in OPTIONS.values() if o.chars], ids=lambda o: o.name)
def test_a_text_is_as_long_as_its_option_allows(option: JobOption) -> None:
    limit = option.chars or 0
    validator = Validator(Config())
    pattern = re.compile(json_rules()[option.name]["pattern"])
    longest, longer = "x" * limit, "x" * (limit + 1)
    validator.validate(by_keywords(**{option.name: longest}), "jobs[0]")
    expected = rf"expected jobs\[0\]\.{option.name} to be printable text of 1 to {limit} characters"
    for wrong in (longer, "", "a\nb"):
        with pytest.raises(InvalidInput, match=expected):
            validator.validate(by_keywords(**{option.name: wrong}), "jobs[0]")
        assert not pattern.search(wrong)
    assert pattern.search(longest)


def test_a_suggestion_is_made_only_for_what_is_close() -> None:
    assert did_you_mean("Prioritty", KEYWORDS) == "; did you mean priority?"
    assert did_you_mean("xyz", KEYWORDS) == ""
