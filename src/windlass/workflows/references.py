"""`after` and `after_any`: from the names in a file to the jobs they mean.

`NAME` means all jobs of an entry, `NAME[a,b]` one of them, and `NAME[*]` those with the same values
on their common axes. For a nested workflow, `NAME` means its last jobs: those that no other of its
jobs waits for.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from windlass.domain.job.dependency_graph import put_in_order
from windlass.domain.job.job import JobSpec
from windlass.domain.job.run_if import check
from windlass.domain.job.validation import DEPENDENCY_LIMIT
from windlass.domain.tasks.references import LITERAL, RESULT, replaced
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import did_you_mean
from windlass.workflows.checking import listed
from windlass.workflows.matrix import Combination, named
from windlass.workflows.nodes import MARK, Consequence, Faults, Node, Place, plain
from windlass.workflows.substitution import Budget

EDGE_LIMIT: Final = 2_500_000  # of a whole workflow
MATCHING: Final = "[*]"
SHOWN: Final = 20  # jobs of a cycle

Numbers = Sequence[int]


class Made:
    """The jobs so far, by number, and the dependencies of each."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.budget = Budget()
        self.nested = 0  # nested workflows
        self.numbers: dict[str, int] = {}
        self._jobs: list[JobSpec] = []
        self._waits: list[list[Numbers]] = []  # both kinds together, as the ordering needs it
        self._names: list[str] = []
        self._after: list[dict[str, list[int | str]]] = []
        self._awaited: set[int] = set()
        self._edges = 0

    def add(self, request: JobSpec, node: Node) -> int:
        """Adds a job."""
        number = len(self._jobs)
        name = request.name or ""
        if name in self.numbers:
            raise node.refuse("jobs", "free of duplicate names", name)
        self.numbers[name] = number
        self._names.append(name)
        self._jobs.append(request)
        self.nodes.append(node)
        self._waits.append([])
        self._after.append({})
        return number

    def job(self, number: int) -> JobSpec:
        """Returns one of them, without its dependencies."""
        return self._jobs[number]

    def change(self, number: int, **options: Any) -> None:
        """Changes options of a job."""
        self._jobs[number] = msgspec.structs.replace(self._jobs[number], **options)

    def wait_for(self, job: int, numbers: Numbers, field: str, where: tuple[Node, str]) -> None:
        """Makes a job wait for others; `where` is the position for errors."""
        ref, path = where
        known = self._after[job].setdefault(field, [])
        self._edges += len(numbers)
        if len(known) + len(numbers) > DEPENDENCY_LIMIT:
            raise ref.refuse(path, f"at most {DEPENDENCY_LIMIT} jobs")
        if self._edges > EDGE_LIMIT:
            raise ref.refuse(path, f"at most {EDGE_LIMIT} dependencies in a workflow", "more")
        known += [self._names[number] for number in numbers]
        self._waits[job].append(numbers)
        self._awaited.update(numbers)

    def waited(self, job: int) -> list[int | str]:
        """Returns what a job waits for, of both kinds."""
        return [name for names in self._after[job].values() for name in names]

    def wait_for_existing(self, job: int, other: int, field: str) -> None:
        """Makes a job wait for one that was submitted before."""
        self._after[job].setdefault(field, []).append(other)

    def starts(self, numbers: Numbers) -> list[int]:
        """Returns those that wait for no other job of the workflow."""
        return [number for number in numbers if not self._waits[number]]

    def ends(self, numbers: Numbers) -> list[int]:
        """Returns those that no other job waits for."""
        return [number for number in numbers if number not in self._awaited]

    def requests(self, namespace: str | None) -> list[JobSpec]:
        """Returns the jobs with their dependencies, in the namespace of their workflow."""
        made: list[JobSpec] = []
        for job, after in zip(self._jobs, self._after, strict=True):
            changes: dict[str, Any] = {
                field: tuple(dict.fromkeys(names)) for field, names in after.items()
            }
            if namespace is not None:
                changes["namespace"] = namespace
            made.append(msgspec.structs.replace(job, **changes) if changes else job)
        return made

    def find_cycle(self) -> list[int]:
        """Returns jobs that wait for each other in a cycle; empty if there is none."""
        waits = [[other for numbers in both for other in numbers] for both in self._waits]
        return put_in_order(waits)[1]


class Instance:
    """One of an entry's jobs, or the jobs of the nested workflow it stands for."""

    __slots__ = ("combination", "ends", "node", "refers", "run_if", "starts")

    def __init__(
        self, combination: Combination, node: Node, starts: list[int], ends: list[int]
    ) -> None:
        self.combination = combination
        self.node = node
        self.starts = starts
        self.ends = ends
        self.run_if: str | None = None  # its condition about other jobs
        self.refers = False  # it uses outputs of other jobs


class Entry:
    """What one name of a file stands for."""

    def __init__(self, name: str, node: Node, field: str, faulty: bool = False) -> None:
        self.faulty = faulty  # it has an error that was already reported
        self.name = name
        self.node = node
        self.field = field
        self.instances: list[Instance] = []
        self._named: dict[str, Instance] = {}
        self._all: list[int] = []
        self.left_out: list[Instance] = []  # those whose condition does not hold
        self._alike: dict[tuple[str, ...], dict[tuple[str, ...], list[int]]] = {}

    def add(self, instance: Instance) -> None:
        """Adds an entry's job."""
        self.instances.append(instance)
        self._named[named(self.name, instance.combination)] = instance
        self._all += instance.ends

    def leave_out(self, instance: Instance) -> None:
        """Records a job that is left out; its dependents wait for its dependencies instead."""
        self.left_out.append(instance)
        self._named.setdefault(named(self.name, instance.combination), instance)

    @property
    def ends(self) -> Numbers:
        """Returns the ends of all of them; the same list each time."""
        return self._all

    def one(self, name: str) -> Instance | None:
        """Returns the one with this name."""
        return self._named.get(name)

    def alike(self, combination: Combination) -> list[int] | None:
        """Returns the ends of those that agree with these values; None without a common axis."""
        known = self.instances or self.left_out
        axes = tuple(name for name in known[0].combination if name in combination)
        if not axes:
            return None
        index = self._alike.get(axes)
        if index is None:
            index = self._alike[axes] = {}
            for instance in self.instances:
                index.setdefault(_on(axes, instance.combination), []).extend(instance.ends)
        return index.get(_on(axes, combination), [])


def link(
    entries: Mapping[str, Entry],
    prefix: str,
    made: Made,
    faults: Faults,
    outputs: Mapping[str, Node],
) -> dict[str, Any]:
    """Makes the jobs of one workflow wait for each other as their entries say.

    Returns the outputs of the workflow, as references to its jobs.
    """
    linker = _Linker(entries, prefix, made)
    for entry in entries.values():
        # An entry without jobs has a fault; its names are still checked.
        for instance in entry.instances or [Instance({}, entry.node, [], [])]:
            before = len(faults.errors)
            linker.link(entry, instance, faults)
            if len(faults.errors) > before:
                break  # Its other jobs have the same names.
    found: dict[str, Any] = {}
    for name, node in outputs.items():
        with faults:
            found[name] = linker.output(node, f"outputs.{name}")
    return found


def refuse_cycles(made: Made) -> None:
    """Raises `Misdescribed` if jobs wait for each other in a cycle, naming it."""
    around = made.find_cycle()
    if around:
        names = {number: name for name, number in made.numbers.items()}
        path = [names[number] for number in around]
        shown = path if len(path) <= SHOWN else [*path[: SHOWN - 1], "…", path[-1]]
        node = made.nodes[around[0]]
        raise (node.get("after") or node).refuse("after", "free of cycles", " → ".join(shown))


class _Linker:
    """Finds what the names in one workflow mean."""

    def __init__(self, entries: Mapping[str, Entry], prefix: str, made: Made) -> None:
        self._entries = entries
        self._prefix = prefix
        self._made = made
        self._inside: set[str] = set()  # entries with omitted jobs that are being resolved

    def link(self, entry: Entry, instance: Instance, faults: Faults) -> None:
        """Links one of an entry's jobs to others."""
        before: set[int] = set()
        for field in ("after", "after_any"):
            found = instance.node.get(field)
            if found is not None and found.value is not None:
                for ref in {node.value: node for node in found.items()}.values():
                    with faults:
                        before |= self._wait_for(entry, instance, ref, field)
        args = instance.node.get("args")
        if args is not None:
            with faults:
                self._give_results(entry, instance, list(_results_in(args)))
        if instance.refers:
            with faults:
                self._give_outputs(entry, instance, before)
        inputs = instance.node.get("inputs")
        if inputs is not None and inputs.value is not None:
            with faults:
                self._take_in(entry, instance, inputs, before)
        if instance.run_if is not None:
            with faults:
                self._decide(entry, instance, instance.run_if)

    def _wait_for(self, entry: Entry, instance: Instance, ref: Node, field: str) -> set[int]:
        where = f"{entry.field}.{field}"
        if isinstance(ref.value, int):
            if ref.value < 1:
                raise ref.refuse(where, "the name of a job, or the id of an existing one")
            for job in instance.starts:
                self._made.wait_for_existing(job, ref.value, field)
            return set()
        if MARK in str(ref.value) and not instance.starts:
            return set()  # It was never filled in.
        numbers = self._resolve(ref, entry, instance, where)
        for job in instance.starts:
            self._made.wait_for(job, numbers, field, (ref, where))
        kept = instance.refers or "inputs" in instance.node.entries()
        return set(numbers) if kept else set()

    def _decide(self, entry: Entry, instance: Instance, condition: str) -> None:
        """Gives a job its condition, which may name its dependencies."""
        where = f"{entry.field}.if"
        written = entry.node.entries()["if"]
        for number in instance.starts:
            waited = self._made.waited(number)
            if not waited:
                raise written.refuse(
                    where, "in a job with after or after_any, since it is about other jobs"
                )
            names = [name for name in waited if isinstance(name, str)]
            try:
                check(condition, where, names if len(names) == len(waited) else None)
            except InvalidInput as error:
                got = str(error.got).removeprefix(self._prefix)
                raise written.refuse(where, error.expected, got, error.hint) from None
            self._made.change(number, run_if=condition)

    def output(self, node: Node, field: str) -> Any:
        """Returns an output of the workflow."""
        value = plain(node)
        return replaced(value, RESULT, lambda ref: self._reference(ref, node, None, field)[0])

    def _give_outputs(self, entry: Entry, instance: Instance, before: set[int]) -> None:
        """Names the jobs whose outputs are in the arguments, and makes it wait for them."""
        node, field = instance.node, entry.field
        for job in instance.starts:
            used: list[int] = []

            def named(reference: Any, used: list[int] = used) -> Any:
                if not isinstance(reference, dict):
                    return {RESULT: reference}
                made, number = self._reference(reference, node, (entry, instance), field)
                used.append(number)
                return made

            args = replaced(self._made.job(job).args, RESULT, named)
            self._made.change(job, args=args)
            more = sorted(set(used) - before)
            self._made.wait_for(job, more, "after", (node, field))

    def _reference(
        self, reference: Any, node: Node, by: tuple[Entry, Instance] | None, field: str
    ) -> tuple[dict[str, Any], int]:
        """Returns a reference to an output with the full name of its job, and its number."""
        name, output = reference["job"], reference["output"]
        at = _place_of(node, f"jobs.{name}.outputs.{output}")
        ref = Node(name, at, name)
        entry, instance = by or (Entry("", node, field), Instance({}, node, [], []))
        numbers = self._resolve(ref, entry, instance, field)
        if len(numbers) != 1:
            if name in self._entries and self._entries[name].faulty:
                raise Consequence(at, field, "a job", name)
            raise ref.refuse(field, "the output of one job", f"{len(numbers)} jobs of {name}")
        job = self._made.nodes[numbers[0]]
        declared = job.get("outputs")
        known = [item.text for item in declared.items()] if declared is not None else []
        if output not in known and (known or job.get("run") is not None):
            hint = did_you_mean(output, known)
            expected = f"an output of {name}, which declares {listed(known)}"
            raise ref.refuse(field, expected, output, hint)
        return {RESULT: {"job": self._made.job(numbers[0]).name, "output": output}}, numbers[0]

    def _take_in(self, entry: Entry, instance: Instance, inputs: Node, before: set[int]) -> None:
        """Sets the job whose artifact an input is, in the form the server expects."""
        made: list[dict[str, Any]] = []
        for index, item in enumerate(inputs.items()):
            fields = plain(item)
            job = item.get("job")
            if job is not None and isinstance(job.value, str):
                where = f"{entry.field}.inputs[{index}].job"
                numbers = self._resolve(job, entry, instance, where)
                if len(numbers) != 1 or numbers[0] not in before:
                    raise job.refuse(where, "one job that this one waits for")
                name = f"{self._made.job(numbers[0]).name}/{fields['artifact']}"
                fields = {**fields, "artifact": {"$lookup": f"@{name}"}}
                fields.pop("job")
            made.append(fields)
        for number in instance.starts:
            args = self._made.job(number).args
            self._made.change(number, args={**args, "inputs": made})

    def _give_results(self, entry: Entry, instance: Instance, refs: Sequence[Node]) -> None:
        """Replaces references to jobs in arguments; one that means several becomes a list."""
        if not refs:
            return
        meant: list[Any] = []
        for ref in refs:
            if not isinstance(ref.value, str):
                meant.append({RESULT: plain(ref)})
                continue
            where = f"{entry.field}.args"
            numbers = self._resolve(ref, entry, instance, where)
            for job in instance.starts:
                self._made.wait_for(job, numbers, "after", (ref, where))
            results = [{RESULT: self._made.job(number).name} for number in numbers]
            meant.append(results[0] if len(results) == 1 else results)
        for number in instance.starts:
            args = self._made.job(number).args
            self._made.change(number, args=replaced(args, RESULT, partial(_next, iter(meant))))

    def _resolve(self, ref: Node, entry: Entry, instance: Instance, where: str) -> Numbers:
        text = str(ref.value)
        numbers: Numbers | None = None
        base = text.partition("[")[0]
        if base in self._entries and self._entries[base].faulty:
            return self._entries[base].ends
        if text in self._entries:
            numbers = self._with_left_out(self._entries[text].ends, self._entries[text], instance)
        elif text.endswith(MATCHING) and base in self._entries:
            found = self._entries[base].alike(instance.combination)
            if found is None or not (found or self._entries[base].left_out):
                raise ref.refuse(where, f"a job of {base} with the same values on a common axis")
            numbers = self._with_left_out(found, self._entries[base], instance)
        elif base in self._entries and (one := self._entries[base].one(text)):
            made = one.ends
            numbers = made or self._with_left_out(made, self._entries[base], instance)
        elif self._prefix + text in self._made.numbers:
            numbers = [self._made.numbers[self._prefix + text]]
        if numbers is None:
            hint = did_you_mean(text, self._entries)
            raise ref.refuse(where, f"the name of a job ({listed(self._entries)})", hint=hint)
        if base == entry.name and not set(instance.starts).isdisjoint(numbers):
            raise ref.refuse(where, "other jobs", f"its own name {text}")
        return numbers

    def _with_left_out(self, numbers: Numbers, entry: Entry, instance: Instance) -> Numbers:
        """Adds the dependencies of jobs that are not made."""
        if not entry.left_out or entry.name in self._inside:
            return numbers
        self._inside.add(entry.name)
        try:
            found = list(numbers)
            for field in ("after", "after_any"):
                refs = entry.node.get(field)
                for ref in refs.items() if refs is not None and refs.value is not None else ():
                    if isinstance(ref.value, str) and MARK not in ref.value:
                        found += self._resolve(ref, entry, instance, f"{entry.field}.{field}")
            return found
        finally:
            self._inside.discard(entry.name)


def _results_in(args: Node) -> Iterator[Node]:
    """Yields the nodes of arguments that refer to results of jobs (see `references_in`)."""
    entries = args.entries()
    if len(entries) == 1 and RESULT in entries:
        yield entries[RESULT]
        return
    literal = entries.get(LITERAL) if len(entries) == 1 else None
    if literal is not None and literal.entries():
        entries = literal.entries()
    items = args.value if isinstance(args.value, list) else entries.values()
    for item in items:
        yield from _results_in(item)


def _place_of(node: Node, name: str) -> Place:
    """Returns the place of a text in a node."""
    if isinstance(node.value, str):
        return node.place
    children = node.value if isinstance(node.value, list) else node.entries().values()
    for child in children:
        if isinstance(child.value, dict | list):
            found = _place_of(child, name)
            if found is not child.place:
                return found
        elif isinstance(child.value, str) and name in child.value:
            return child.place
    return node.place


def _next(values: Iterator[Any], _: object) -> Any:
    return next(values)


def _on(axes: tuple[str, ...], combination: Combination) -> tuple[str, ...]:
    return tuple(combination[name].text for name in axes)
