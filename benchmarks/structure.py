"""How much code there is, and how much of it one request meets: `python -m benchmarks.structure`.

Decision 068 says what the figures are for. They count the core, `src/windlass`:

- a function only passes on a call if its body is one call, awaited or returned, whose arguments are
  plain names, constants or attributes;
- two structs share their fields if at least 60 % of the fields of the larger one (of at least four)
  have the same names in the other;
- the way from submit to show is what the commands `submit -- true` and `show 1` and their server
  call until they end, with the loops that run meanwhile; worker, imports and the start of the
  server do not count.
"""

import ast
import asyncio
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from tests.cli.program import run_here
from tests.support.running_server import running_server
from windlass.domain.access.rights import Role

SOURCE = Path(__file__).parents[1] / "src" / "windlass"
SHARED = 0.6
LEAST_FIELDS = 4


def nodes() -> Iterator[ast.AST]:
    for path in SOURCE.rglob("*.py"):
        yield from ast.walk(ast.parse(path.read_text()))


def only_passes_on(node: ast.AST) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    body = [one for one in node.body if not _is_text(one)]
    if len(body) != 1 or not isinstance(body[0], ast.Return | ast.Expr):
        return False
    value = body[0].value
    call = value.value if isinstance(value, ast.Await) else value
    if not isinstance(call, ast.Call):
        return False
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    plain = [one.value if isinstance(one, ast.Starred) else one for one in given]
    return all(isinstance(one, ast.Name | ast.Constant | ast.Attribute) for one in plain)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def fields_of(node: ast.AST) -> set[str]:
    body = node.body if isinstance(node, ast.ClassDef) else []
    annotated = (one.target for one in body if isinstance(one, ast.AnnAssign))
    return {one.id for one in annotated if isinstance(one, ast.Name)}


def pairs(structs: list[set[str]]) -> int:
    return sum(
        len(one & other) >= SHARED * max(len(one), len(other))
        for number, one in enumerate(structs)
        for other in structs[number + 1 :]
    )


async def met_by_a_request() -> set[tuple[str, str]]:
    """Returns the files and functions on the way from submit to show."""
    met: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_ours = event == "call" and code.co_filename.startswith(f"{SOURCE}/")
        if is_ours and code.co_name != "<module>":
            met.add((code.co_filename, code.co_qualname))

    with tempfile.TemporaryDirectory() as name:
        store, blobs = f"sqlite:///{name}/jobs.db", f"file://{name}/blobs"
        async with running_server(store, blobs=blobs) as server:
            token = await server.token(Role.ADMIN)
            variables = {"WINDLASS_SERVER": server.address, "WINDLASS_TOKEN": token}
            threading.setprofile(note)
            sys.setprofile(note)
            for words in (["submit", "--", "true"], ["show", "1"]):
                await asyncio.to_thread(run_here, words, variables)
            sys.setprofile(None)
            threading.setprofile(None)
    return met


def main() -> None:
    files = list(SOURCE.rglob("*.py"))
    found = list(nodes())
    structs = [fields for fields in map(fields_of, found) if len(fields) >= LEAST_FIELDS]
    met = asyncio.run(met_by_a_request())
    print(f"lines                          {sum(len(f.read_text().splitlines()) for f in files)}")
    print(f"files                          {len(files)}")
    print(f"classes                        {sum(isinstance(n, ast.ClassDef) for n in found)}")
    print(f"functions that only pass on    {sum(map(only_passes_on, found))}")
    print(f"pairs of structs               {pairs(structs)}")
    print(f"files from submit to show      {len({file for file, _ in met})}")
    print(f"functions from submit to show  {len(met)}")


if __name__ == "__main__":
    main()
