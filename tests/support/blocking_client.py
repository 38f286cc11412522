"""Writes the blocking client from the asynchronous one: `make blocking-client`.

Signatures, overloads and docstrings are those of the asynchronous methods. A body runs the
coroutine in the client's thread, and makes blocking handles of the handles that it returns. What
cannot be derived is in `windlass.client.blocking.base`.
"""

import ast
import copy
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

SRC: Final = Path(__file__).parents[2] / "src"
BLOCKING: Final = "windlass.client.blocking"
FOLDER: Final = SRC / BLOCKING.replace(".", "/")
FIRST_LINE: Final = "# Written by `make blocking-client`: change the asynchronous client instead."

N = TypeVar("N", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Twin(NamedTuple):
    """A class of the asynchronous client, and its name and bases in the blocking one."""

    module: str
    name: str
    blocking: str
    bases: str


RESOURCES: Final = "windlass.client.resources"
PAGES: Final = {
    "client": (
        Twin("windlass.client.client", "AsyncClient", "Client", "BlockingClient"),
    ),
    "handles": (
        Twin("windlass.client.handles", "AsyncJob", "JobHandle",
             "Handle[AsyncJob[R_co]], OfOneJob[R_co]"),
        Twin("windlass.client.workflows", "AsyncWorkflow", "WorkflowHandle",
             "Handle[AsyncWorkflow]"),
        Twin("windlass.client.builder", "AsyncWorkflowBlock", "Workflow", "WorkflowHandle"),
    ),
    "resources": (
        Twin(RESOURCES, "AsyncWorkers", "Workers", "InThread[AsyncWorkers]"),
        Twin(RESOURCES, "AsyncQueues", "Queues", "InThread[AsyncQueues]"),
        Twin(RESOURCES, "AsyncTemplates", "Templates", "InThread[AsyncTemplates]"),
        Twin(RESOURCES, "AsyncSchedules", "Schedules", "InThread[AsyncSchedules]"),
        Twin(RESOURCES, "AsyncPools", "Pools", "InThread[AsyncPools]"),
        Twin(RESOURCES, "AsyncTokens", "Tokens", "InThread[AsyncTokens]"),
    ),
}  # fmt: skip
DOCSTRINGS: Final = {
    "client": "The client for blocking code: every call is one of the asynchronous client, in its "
    "thread.",
    "handles": "Handles for blocking code: jobs, and workflows with their block.",
    "resources": "`client.workers`, `client.queues` and their like, for blocking code.",
}

# Methods that only the asynchronous class has, and why.
ONLY_ASYNC: Final = {
    ("AsyncClient", "service"): "it belongs to the event loop",
    ("AsyncClient", "transport"): "it belongs to the event loop",
    ("AsyncClient", "open"): "the first call opens the connections",
    ("AsyncClient", "close"): "the base has it, and ends the thread",
    ("AsyncClient", "__aenter__"): "the base has it, and opens nothing",
    ("AsyncClient", "__aexit__"): "the base has it, and ends the thread",
    ("AsyncJob", "service"): "it belongs to the event loop",
    ("AsyncJob", "given_at"): "its operations send it",
    ("AsyncJob", "value_of"): "a part of `result`",
    ("AsyncJob", "failure_of"): "a part of `result`",
    ("AsyncJob", "note_end"): "a part of `as_completed`",
    ("AsyncJob", "checked"): "a part of `info` and `wait`",
}
# They begin in the thread of the caller, and need the event loop only for what is not usual.
FROM_HERE: Final = {"map", "submit", "submit_many"}
# Their bodies run in the thread of the caller, as they are but without `await`.
IN_CALLER: Final = {"submit_in"}

OWN_IMPORTS: Final = (
    f"from {BLOCKING}.base import BlockingClient, Handle, InThread, each",
    f"from {BLOCKING}.loop_thread import LoopThread",
    "from windlass.client.builder import all_behind, behind",
)

SPECIAL: Final = {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__windlass_reference__": "__windlass_reference__",
}
CLASSES: Final = {
    **{twin.name: twin.blocking for twins in PAGES.values() for twin in twins},
    "PlannedJob": "JobHandle",
}
HOMES: Final = {
    twin.blocking: f"{BLOCKING}.{page}" for page, twins in PAGES.items() for twin in twins
}
NAMES: Final = {**CLASSES, "AsyncIterator": "Iterator", "submit_in_async": "submit_in"}
WORDS: Final = {
    "a program with an event loop": "blocking code, in any thread and also in a running event loop",
    "Several event loops may use it. With a `service`, it asks that instead of a server.": "Its "
    "calls run in the event loop of a thread of its own, those of several threads at once.\n"
    "    Submissions begin in the calling thread, and usually end there. After a fork, it opens\n"
    "    connections of its own. A given `client` lives in the loop of its `thread`.",
    "an `async with`": "a `with`",
    "an async connection": "a connection",
    "submit_in_async": "submit_in",
}
# How a job that may be a handle is passed on.
UNWRAPPED: Final = {
    "int | AsyncJob[Any]": "behind",
    "Iterable[int | AsyncJob[Any]]": "all_behind",
}


class _Renamed(ast.NodeTransformer):
    """Gives everything its blocking name, and awaits nothing."""

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(blocking_name(node.id))

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, str) and re.fullmatch(r"\w+(\[\w+\])?", node.value):
            return ast.Constant(re.sub(r"\w+", lambda found: blocking_name(found[0]), node.value))
        return node

    def visit_alias(self, node: ast.alias) -> ast.alias:
        return ast.alias(blocking_name(node.name), node.asname)

    def visit_Await(self, node: ast.Await) -> ast.AST:
        return renamed(node.value)


def renamed(node: N) -> N:
    made: N = _Renamed().visit(copy.deepcopy(node))
    return made


def blocking_name(name: str) -> str:
    """Returns what a name of the asynchronous client is called in the blocking one.

    A message that is called as a blocking class, such as `Workflow`, becomes `WorkflowInfo`.
    """
    return f"{name}Info" if name in HOMES else NAMES.get(name, name)


@cache
def parsed(module: str) -> ast.Module:
    return ast.parse((SRC / f"{module.replace('.', '/')}.py").read_text())


def class_of(twin: Twin) -> ast.ClassDef:
    """Returns the asynchronous class."""
    nodes = (node for node in parsed(twin.module).body if isinstance(node, ast.ClassDef))
    return next(node for node in nodes if node.name == twin.name)


def methods_of(twin: Twin) -> Iterator[list[Function]]:
    """Yields the methods that have a blocking twin, each behind its overloads."""
    overloads: list[Function] = []
    for node in class_of(twin).body:
        if not isinstance(node, Function) or (twin.name, node.name) in ONLY_ASYNC:
            continue
        if node.name.startswith("_") and node.name not in SPECIAL:
            continue
        overloads.append(node)
        if not is_decorated(node, "overload"):
            yield overloads
            overloads = []


def is_decorated(function: Function, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in function.decorator_list)


def docstring_of(node: Function | ast.ClassDef) -> list[ast.stmt]:
    """Returns the docstring as blocking code has it."""
    text = ast.get_docstring(node, clean=False)
    return [] if text is None else [ast.Expr(ast.Constant(in_blocking_words(text)))]


def in_blocking_words(docstring: str) -> str:
    for before, after in WORDS.items():
        docstring = docstring.replace(before, after)
    return docstring


def class_in(annotation: ast.expr | None) -> str:
    """Returns the class of an annotation: `AsyncJob` of `AsyncJob[R]`."""
    text = "" if annotation is None else ast.unparse(annotation)
    return text.strip("'").partition("[")[0]


def blocking_class(twin: Twin) -> ast.ClassDef:
    """Returns the blocking class."""
    node = class_of(twin)
    body = docstring_of(node)
    owner = "self._client"
    if twin.name == "AsyncClient":
        body.append(constructor(node))
        owner = "self"
    if twin.bases in HOMES:  # which knows only the asynchronous class of its own
        body += statements(f"_async: {twin.name}")
    for *overloads, function in methods_of(twin):
        body += [blocking_function(one, statements("...")) for one in overloads]
        body.append(blocking_function(function, body_of(function, overloads, owner)))
    bases = ast.parse(f"({twin.bases},)", mode="eval").body
    assert isinstance(bases, ast.Tuple)
    return ast.ClassDef(name=twin.blocking, bases=bases.elts, keywords=[], body=body,
                        decorator_list=[])  # fmt: skip


def statements(source: str) -> list[ast.stmt]:
    return ast.parse(source).body


def blocking_function(function: Function, body: list[ast.stmt]) -> ast.FunctionDef:
    """Returns a function with the signature of an asynchronous one."""
    returns = None if function.returns is None else renamed(function.returns)
    told = "" if returns is None else ast.unparse(returns)
    assert not re.search(r"\bAsync", told), f"{function.name} returns {told} to blocking code"
    return ast.FunctionDef(
        name=SPECIAL.get(function.name, function.name),
        args=renamed(function.args),
        body=body,
        decorator_list=function.decorator_list,
        returns=returns,
    )


def constructor(client: ast.ClassDef) -> ast.FunctionDef:
    """Returns the constructor of the client, which takes a client and its thread as service."""
    nodes = (node for node in client.body if isinstance(node, ast.FunctionDef))
    made = blocking_function(next(node for node in nodes if node.name == "__init__"), [])
    assert made.args.kwonlyargs.pop().arg == "service"
    passed = ", ".join(arguments_of(made.args))
    made.body = statements(
        f"own = client or AsyncClient({passed})\n"
        "super().__init__(own, thread, opens=spool is not None)"
    )
    for name, kind in (("client", "AsyncClient | None"), ("thread", "LoopThread | None")):
        made.args.kwonlyargs.append(ast.arg(name, ast.Name(kind)))
    made.args.kw_defaults.append(ast.Constant(None))  # one default was that of the service
    return made


def body_of(function: Function, overloads: list[Function], owner: str) -> list[ast.stmt]:
    """Returns the body of a blocking method; `owner` is what runs coroutines."""
    docstring = docstring_of(function)
    rest = function.body[len(docstring) :]
    if function.name in IN_CALLER:
        return [*docstring, *map(renamed, rest)]
    call = f"self._async.{function.name}"
    if not is_decorated(function, "property"):
        call = f"{call}({', '.join(arguments_of(function.args))})"
    if isinstance(function, ast.AsyncFunctionDef):
        run = "run_from_here" if function.name in FROM_HERE else "run"
        call = f"{owner}.{run}({call})"
    imports = [f"from {HOMES[name]} import {name}" for name in imported_classes(rest)]
    returned = returning(function, [class_in(one.returns) for one in overloads], call, owner)
    return [*docstring, *statements("\n".join([*imports, returned]))]


def arguments_of(given: ast.arguments) -> Iterator[str]:
    """Yields the arguments of a method as they are passed on."""
    for one in [*given.posonlyargs, *given.args][1:]:
        yield passed_on(one)
    if given.vararg:
        yield f"*{given.vararg.arg}"
    for one in given.kwonlyargs:
        yield f"{one.arg}={passed_on(one)}"
    if given.kwarg:
        yield f"**{given.kwarg.arg}"


def passed_on(argument: ast.arg) -> str:
    """Returns an argument as the asynchronous client takes it."""
    kind = "" if argument.annotation is None else ast.unparse(argument.annotation)
    if kind in UNWRAPPED:
        return f"{UNWRAPPED[kind]}({argument.arg})"
    assert not re.search(r"\bAsync", kind), f"{kind} is not passed on to async code as it is"
    return argument.arg


def imported_classes(body: list[ast.stmt]) -> list[str]:
    """Returns the blocking classes that a method imports where it uses them."""
    names = [one.name for node in body if isinstance(node, ast.ImportFrom) for one in node.names]
    return [CLASSES[name] for name in names if name in CLASSES]


def returning(function: Function, overloaded: list[str], call: str, owner: str) -> str:
    """Returns the statements that return what a call returns, as blocking code has it."""
    returns = function.returns
    kind = class_in(returns)
    narrower = [one for one in overloaded if CLASSES.get(one) != CLASSES.get(kind)]
    if kind == "None":
        return call
    if kind == "AsyncIterator":
        return f"stream = {call}\nyield from each({owner}, stream)"
    if kind == "Self":
        return f"return self._like({call})" if owner == "self" else f"{call}\nreturn self"
    if kind == "list" and isinstance(returns, ast.Subscript) and class_in(returns.slice) in CLASSES:
        inner = CLASSES[class_in(returns.slice)]
        return f"made = {call}\nreturn [{inner}({owner}, one) for one in made]"
    if kind not in CLASSES:
        return f"return {call}"
    special = "".join(
        f"if isinstance(made, {one}): return {CLASSES[one]}({owner}, made)\n" for one in narrower
    )
    return f"made = {call}\n{special}return {CLASSES[kind]}({owner}, made)"


def imported_name(module: str, name: str, page: str) -> list[str]:
    """Returns the import of a name, and of what blocking code has in its place."""
    made = blocking_name(name)
    if made == name:
        return [f"from {module} import {name}"]
    if name in HOMES:
        return [f"from {module} import {name} as {made}"]
    home = HOMES.get(made, module)
    own = [] if home == f"{BLOCKING}.{page}" else [f"from {home} import {made}"]
    return [f"from {module} import {name}", *own]


def imported(node: ast.stmt, module: str, page: str) -> list[str]:
    """Returns the imports of what a statement imports or defines."""
    if isinstance(node, ast.ImportFrom):
        names = (imported_name(str(node.module), one.name, page) for one in node.names)
        return [line for lines in names for line in lines]
    if isinstance(node, ast.ClassDef):
        return imported_name(module, node.name, page)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):  # an alias
        return imported_name(module, ast.unparse(node.targets[0]), page)
    return []


def written(page: str) -> str:
    """Returns the source of a module of the blocking client."""
    twins = PAGES[page]
    nodes = [blocking_class(twin) for twin in twins]
    classes = "\n\n".join(ast.unparse(ast.fix_missing_locations(node)) for node in nodes)
    lines, for_types, variables = list(OWN_IMPORTS), [], []
    for module in dict.fromkeys(twin.module for twin in twins):
        for node in parsed(module).body:
            lines += imported(node, module, page)
            if isinstance(node, ast.If):  # TYPE_CHECKING
                for_types += [line for one in node.body for line in imported(one, module, page)]
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                name = ast.unparse(node.targets[0])
                variables += [ast.unparse(node)] if re.search(rf"\b{name}\b", classes) else []
    if for_types:
        for_types = [f"    {line}" for line in dict.fromkeys(for_types)]
        lines += ["if TYPE_CHECKING:  # loaded when they are first used", *for_types, ""]
    head = [FIRST_LINE, f'"""{DOCSTRINGS[page]}"""', *dict.fromkeys(lines)]
    return tidied("\n".join([*head, *dict.fromkeys(variables), classes]))


def tidied(source: str) -> str:
    """Returns a source without the imports that nothing needs, sorted and formatted."""
    for command in ("check --fix-only --select=F401", "check --fix-only --select=I001", "format"):
        ruff = [sys.executable, "-m", "ruff", *command.split(), "--quiet",
                f"--stdin-filename={FOLDER / 'generated.py'}", "-"]  # fmt: skip
        done = subprocess.run(ruff, input=source, capture_output=True, text=True, check=True)
        source = done.stdout
    return source


def main() -> None:
    """Writes the modules anew."""
    for page in PAGES:
        (FOLDER / f"{page}.py").write_text(written(page))


if __name__ == "__main__":
    main()
