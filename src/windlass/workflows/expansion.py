"""From a description to the jobs of a workflow.

Every entry becomes one job, or the jobs of its matrix, or those of another workflow; then the names
in `after` become names of jobs. Sizes are checked before anything is made: a file of a few lines
can describe more jobs than fit into memory.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.messages.jobs import NewWorkflow
from windlass.workflows.checking import check, fitting
from windlass.workflows.conditions import Condition
from windlass.workflows.files import MAX_LEVELS, Files, LocalFiles, NoFiles
from windlass.workflows.format import (
    JOB_FIELDS,
    OF_COMMANDS,
    OF_SUBWORKFLOWS,
    WITH_OUTPUTS,
    WORKFLOW_FIELDS,
    WRITTEN,
)
from windlass.workflows.jobs import (
    PLAIN,
    REACTIONS,
    check_job_name,
    check_option,
    check_workflow,
    make_job,
    place_in,
)
from windlass.workflows.matrix import Combination, combinations, named, scope_of
from windlass.workflows.nodes import (
    Consequence,
    Misdescribed,
    Node,
    Place,
    mapping,
    of_plain,
    plain,
    together,
)
from windlass.workflows.parameters import bind, values
from windlass.workflows.references import Entry, Instance, Made, link, refuse_cycles
from windlass.workflows.substitution import Scope, substitute, substitute_line, substitute_text

JOB_LIMIT: Final = 250_000  # of a whole workflow
NESTED_LIMIT: Final = 10_000  # nested workflows in a whole workflow


class Expansion(msgspec.Struct, frozen=True):
    """The jobs to submit with the places of their descriptions, and the workflow itself."""

    workflow: NewWorkflow
    jobs: list[JobSpec]
    nodes: list[Node]
    tree: Node

    def place_of(self, job: int, field: str) -> Place:
        """Returns the position of a field by the server's name: `retries`, `args.argv[1]`."""
        return place_in(self.nodes[job], field)


def expand(
    description: Mapping[str, Any], parameters: Mapping[str, Any]
) -> tuple[NewWorkflow, list[JobSpec]]:
    """Expands a description given as data, with these parameters."""
    made = expand_tree(of_plain(description), parameters, NoFiles())
    return made.workflow, made.jobs


def expand_file(path: Path, parameters: Mapping[str, Any]) -> Expansion:
    """Expands the workflow in a file, with these parameters."""
    files = LocalFiles()
    name, tree = files.open(path)
    return expand_tree(tree, parameters, files, name)


def expand_tree(
    tree: Node, parameters: Mapping[str, Any], files: Files, file: str = ""
) -> Expansion:
    """Expands a parsed document; `file` names it in errors and references."""
    made = Made()
    given = {name: of_plain(value) for name, value in parameters.items()}
    with files.faults:
        level = _Level(tree, given, "", files, (file,), made)
        workflow = level.workflow()
        level.expand()
        refuse_cycles(made)
        workflow = msgspec.structs.replace(workflow, outputs=level.outputs)
    files.faults.tell()
    return Expansion(workflow, made.requests(workflow.namespace), made.nodes, tree)


class _Level:
    """One level of nested workflows."""

    def __init__(
        self,
        tree: Node,
        given: Mapping[str, Node],
        prefix: str,
        files: Files,
        chain: tuple[str, ...],
        made: Made,
        priority: Node | None = None,
        forgiving: bool = False,
        env: Mapping[str, Node] = MappingProxyType({}),
        timeout: Node | None = None,
    ) -> None:
        self._faults = files.faults
        before = len(self._faults.errors)
        fits = fitting(tree, WRITTEN, "", self._faults)
        if fits is None or not isinstance(fits.get("jobs"), Node):
            raise together(self._faults.errors)
        self._tree = fits
        self._misfit = _entries_with(self._faults.errors[before:], tree)
        declared = fits.get("parameters")
        self._bound = bind(declared, given, tree.place, self._faults)
        named_values = {f"parameters.{n}": node for n, node in self._bound.items()}
        wrong = frozenset() if declared is None else declared.entries().keys() - self._bound.keys()
        unknown = frozenset(f"parameters.{name}" for name in wrong)
        self._scope = Scope(named_values, made.budget, unknown)
        self.outputs: dict[str, Any] = {}
        self._prefix = prefix
        self._files = files
        self._chain = chain
        self._made = made
        self._priority = priority
        self._forgiving = forgiving  # its jobs may fail
        own = tree.get("env")
        self._env = {**env, **({} if own is None else self._variables(own))}
        limit = tree.get("timeout")
        self._timeout = timeout if limit is None else self._limit(limit)

    def _variables(self, env: Node) -> Mapping[str, Node]:
        with self._faults:
            return self._field("env", env).entries()
        return {}

    def _limit(self, written: Node) -> Node | None:
        """Returns the timeout of jobs without their own."""
        with self._faults:
            settled = self._field("timeout", written)
            check_option("timeout", settled)
            return settled
        return None

    def _field(self, name: str, written: Node) -> Node:
        """Returns a field of the workflow itself after substitution."""
        settled = substitute(written, self._scope, name)
        check(settled, WORKFLOW_FIELDS[name], name)
        return settled

    def workflow(self) -> NewWorkflow:
        """Returns the workflow itself."""
        tree = self._tree.entries()
        given: dict[str, Node] = {}
        for name in (*PLAIN, "labels", *REACTIONS):
            if name in tree and tree[name].value is not None:
                with self._faults:
                    given[name] = self._field(name, tree[name])
        plainly = {"name": "workflow", **{name: plain(node) for name, node in given.items()}}
        if "labels" in given:
            plainly["labels"] = {n: node.text for n, node in given["labels"].entries().items()}
        new = NewWorkflow(**plainly, parameters=values(self._bound))
        check_workflow(new, mapping(given, self._tree.place, self._tree.keys), self._faults)
        return new

    def expand(self) -> None:
        """Counts the jobs of all entries, creates them, and links them."""
        entries: dict[str, Entry] = {}
        chosen: dict[str, list[Combination]] = {}
        jobs = self._tree.entries()["jobs"]
        for written, fits in jobs.entries().items():
            node = _completed(fits) if written in self._misfit else fits
            with self._faults:
                name = self._name(written, jobs.place_of(written), entries)
                entries[name] = entry = Entry(name, node, f"jobs.{name}", faulty=True)
                chosen[name] = self._combinations(entry, self._misfit.get(written, ()))
                self._reserve(sum(map(len, chosen.values())), node, entry.field)
                entry.faulty = written in self._misfit
        for name, values_of_jobs in chosen.items():
            entry, before = entries[name], len(self._faults.errors)
            with self._faults:
                self._fill(entry, values_of_jobs)
            if entry.faulty and "matrix" in self._misfit.get(name, ()):
                # They follow from errors that are already reported.
                del self._faults.errors[before:]
            entry.faulty = entry.faulty or len(self._faults.errors) > before
        outputs = self._named_outputs() if not self._prefix else {}
        self.outputs = link(entries, self._prefix, self._made, self._faults, outputs)

    def _named_outputs(self) -> dict[str, Node]:
        """Returns the outputs of the workflow, with the names of jobs as written."""
        written = self._tree.get("outputs")
        scope = self._scope.with_outputs()
        found: dict[str, Node] = {}
        for name, node in ({} if written is None else written.entries()).items():
            with self._faults:
                found[name] = substitute(node, scope, f"outputs.{name}")
        return found

    def _combinations(self, entry: Entry, misfit: Collection[str]) -> list[Combination]:
        with self._faults:
            _condition_of(entry)  # It is checked even if it cannot be decided.
        matrix = self._own(entry.node, "matrix", entry.field)
        count = self._own(entry.node, "count", entry.field)
        try:
            return combinations(matrix, count, entry.field)
        except Misdescribed as error:
            if "matrix" not in misfit:
                raise
            # It follows from an error in the matrix that is already reported.
            raise Consequence(error.place, error.field, error.expected, error.got) from None

    def _name(self, written: str, place: Place, entries: Mapping[str, Entry]) -> str:
        name = substitute_text(written, self._scope, place, "jobs")
        if not name or any(sign in name for sign in "[]/*"):
            raise Misdescribed(place, "the name of a job", "without [ ] / and *", name)
        if name in entries:
            raise Misdescribed(place, "jobs", "free of duplicate names", name)
        return name

    def _fill(self, entry: Entry, chosen: list[Combination]) -> None:
        settled: Node | None = None
        differs = False
        condition: Condition | None = None
        with self._faults:
            condition = _condition_of(entry)
        refers, told = False, len(self._faults.errors)
        for combination in chosen:
            if len(self._faults.errors) > told:
                break  # The others have the same faults.
            later, is_made = self._decide(condition, combination)
            if not is_made:
                entry.leave_out(Instance(combination, entry.node, [], []))
                continue
            if settled is None or differs:
                scope = self._scope.with_values(scope_of(combination))
                settled = self._settle(entry.node, scope, entry.field)
                differs, refers = scope.uses_more_than(self._scope), scope.refers
            if settled.entries().get("workflow") is None:
                instance = self._job(entry, combination, settled)
            else:
                instance = self._inside(entry, combination, settled, len(chosen))
            instance.run_if, instance.refers = later, refers
            entry.add(instance)

    def _decide(
        self, condition: Condition | None, combination: Combination
    ) -> tuple[str | None, bool]:
        """Returns the part of a condition to decide later, and whether the job is made.

        An unreadable condition is reported, and the rest of the job is still checked.
        """
        if condition is None:
            return None, True
        with self._faults:
            scope = self._scope.with_values(scope_of(combination))
            if condition.is_about_jobs:
                return condition.for_later(scope, self._prefix.__add__), True
            return None, condition.holds(scope)
        return None, True

    def _own(self, node: Node, part: str, field: str) -> Node | None:
        """Returns the matrix or count of an entry, which may contain parameters."""
        found = node.get(part)
        if found is None or found.value is None:
            return None
        settled = substitute(found, self._scope, f"{field}.{part}")
        check(settled, JOB_FIELDS[part], f"{field}.{part}")
        return settled

    def _settle(self, node: Node, scope: Scope, field: str) -> Node:
        """Substitutes the values of one job in an entry, except inside a nested workflow."""
        parts = {n: c for n, c in node.entries().items() if n not in ("matrix", "count", "if")}
        inner = parts.get("workflow")
        kept = inner if inner is not None and isinstance(inner.value, dict) else None
        settled: dict[str, Node] = {}
        told = len(self._faults.errors)
        for name, part in parts.items():
            if not part.live or part is kept:
                settled[name] = part
            else:
                where = f"{field}.{name}"
                is_line = name == "run" and isinstance(part.value, str)
                scope.outputs = name in WITH_OUTPUTS
                with self._faults:
                    filled = (substitute_line if is_line else substitute)(part, scope, where)
                    check(filled, JOB_FIELDS[name], where)
                    settled[name] = filled
        made = Node(settled, node.place)
        made.keys = node.keys
        return made if len(self._faults.errors) == told else _completed(made)

    def _job(self, entry: Entry, combination: Combination, node: Node) -> Instance:
        name = self._prefix + named(entry.name, combination)
        like = entry.instances[-1] if entry.instances else None
        if like is not None and like.node is node:
            request = msgspec.structs.replace(self._made.job(like.starts[0]), name=name)
            check_job_name(name, node, entry.field)
        else:
            request = make_job(name, node, entry.field, self._defaults(), self._env)
            if self._forgiving:
                request = msgspec.structs.replace(request, allow_failure=True)
        number = self._made.add(request, node)
        return Instance(combination, node, [number], [number])

    def _defaults(self) -> dict[str, Node]:
        """Returns the default options of jobs."""
        given = {"priority": self._priority, "timeout": self._timeout}
        return {name: node for name, node in given.items() if node is not None}

    def _inside(self, entry: Entry, combination: Combination, node: Node, alike: int) -> Instance:
        """Returns the jobs of a nested workflow."""
        for name in node.entries():
            if name not in OF_SUBWORKFLOWS:
                expected = f"with only {', '.join(sorted(OF_SUBWORKFLOWS))} beside workflow"
                raise Misdescribed(node.place_of(name), entry.field, expected, name)
        inner = node.entries()["workflow"]
        file, tree = self._document(inner, f"{entry.field}.workflow")
        given = node.get("parameters")
        priority = node.get("priority") or tree.get("priority") or self._priority
        forgiven = node.get("allow_failure")
        self._made.nested += 1
        if self._made.nested > NESTED_LIMIT:
            expected = f"at most {NESTED_LIMIT} nested workflows in a workflow"
            raise node.refuse(entry.field, expected, "more")
        before, told = len(self._made.nodes), len(self._faults.errors)
        level = _Level(
            tree, given.entries() if given is not None else {},
            f"{self._prefix}{named(entry.name, combination)}/",
            self._files, (*self._chain, file), self._made, priority,
            self._forgiving or (forgiven is not None and bool(forgiven.value)), self._env,
            self._timeout,
        )  # fmt: skip
        level.expand()
        size = len(self._made.nodes) - before
        if not size and len(self._faults.errors) > told:
            raise Consequence(inner.place, entry.field, "a workflow with jobs", "none")
        if not size:
            raise inner.refuse(f"{entry.field}.workflow", "a workflow with jobs", "none")
        if not entry.instances:
            self._reserve(size * (alike - 1), node, entry.field)
        numbers = range(before, before + size)
        return Instance(combination, node, self._made.starts(numbers), self._made.ends(numbers))

    def _document(self, inner: Node, field: str) -> tuple[str, Node]:
        if len(self._chain) >= MAX_LEVELS:
            raise inner.refuse(field, f"at most {MAX_LEVELS} levels of nested workflows")
        if isinstance(inner.value, dict):
            return "", inner
        file, tree = self._files.find(inner, field)
        if file in self._chain:
            around = " → ".join(Path(name).name for name in (*self._chain, file))
            raise inner.refuse(field, "free of recursion", around)
        return file, tree

    def _reserve(self, more: int, node: Node, field: str) -> None:
        if len(self._made.nodes) + more > JOB_LIMIT:
            raise node.refuse(field, f"at most {JOB_LIMIT} jobs in a workflow", "more")


def _condition_of(entry: Entry) -> Condition | None:
    """Returns the condition of an entry, if it has one."""
    written = entry.node.get("if")
    if written is None or written.value is None:
        return None
    return Condition(written, f"{entry.field}.if")


def _entries_with(errors: Sequence[Misdescribed], tree: Node) -> dict[str, set[str]]:
    """Returns the jobs with errors, and the wrong fields of each."""
    found: dict[str, set[str]] = {}
    for name in tree.entries()["jobs"].entries():
        start = f"jobs.{name}."
        about = [f"{error.field}." for error in errors if f"{error.field}.".startswith(start)]
        if about:
            found[name] = {field.removeprefix(start).partition(".")[0] for field in about}
    return found


def _completed(node: Node) -> Node:
    """Returns a job without its faulty fields, completed so that the rest can be checked."""
    given = node.entries()
    if any(given.get(name) is not None for name in ("run", "task", "workflow")):
        return node
    name = "run" if any(part in given for part in OF_COMMANDS) else "task"
    return mapping({**given, name: Node("unknown", node.place, "unknown")}, node.place, node.keys)
