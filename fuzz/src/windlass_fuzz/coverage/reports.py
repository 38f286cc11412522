"""Parses the output of gcov and llvm-cov for one run into the functions it reached."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from windlass_fuzz.coverage.coverage_map import Function
from windlass_fuzz.coverage.reach import Reach, SourceReach
from windlass_fuzz.errors import InvalidSetting


class _GcovFunction(msgspec.Struct):
    demangled_name: str
    start_line: int
    execution_count: int


class _GcovLine(msgspec.Struct):
    line_number: int
    count: int


class _GcovFile(msgspec.Struct):
    file: str
    functions: list[_GcovFunction]
    lines: list[_GcovLine] = []


class _Gcov(msgspec.Struct):
    files: list[_GcovFile]
    current_working_directory: str = ""


class _LlvmFunction(msgspec.Struct):
    name: str
    count: int
    filenames: list[str]
    regions: list[list[int]]


class _LlvmExport(msgspec.Struct):
    functions: list[_LlvmFunction]


class _Llvm(msgspec.Struct):
    data: list[_LlvmExport]


def reached_by_gcov(documents: bytes, root: Path) -> Iterator[Function]:
    """Parses the lines that `gcov --json-format --stdout` prints, one per object file."""
    for path, file in _gcov_files(documents, root):
        for function in file.functions:
            if function.execution_count > 0:
                yield Function(path, function.demangled_name, function.start_line)


def reach_by_gcov(documents: bytes, root: Path) -> Reach:
    """Parses the same lines, with the functions and lines that were not reached."""
    found = Reach()
    for path, file in _gcov_files(documents, root):
        source = found.source(path)
        for function in file.functions:
            source.add_function(
                Function(path, function.demangled_name, function.start_line),
                function.execution_count,
            )
        for line in file.lines:
            source.add_line(line.line_number, line.count)
    return found


def reach_by_lcov(text: str, root: Path, names: Mapping[str, str]) -> Reach:
    """Parses what `llvm-cov export -format=lcov` prints."""
    found = Reach()
    source: SourceReach | None = None
    path = ""
    starts: dict[str, int] = {}
    for line in text.splitlines():
        kind, _, rest = line.partition(":")
        if kind == "SF":
            path = path_below(Path(rest), root) or ""
            source = found.source(path) if path else None
            starts = {}
        elif source is None:
            continue
        elif kind == "FN":
            starts[rest.rpartition(",")[2]] = _number(rest.partition(",")[0])
        elif kind == "FNDA":
            count, _, name = rest.partition(",")
            plain = names.get(lcov_name(name), lcov_name(name))
            source.add_function(Function(path, plain, starts.get(name, 0)), _number(count))
        elif kind == "DA":
            number, _, count = rest.partition(",")
            source.add_line(_number(number), _number(count.partition(",")[0]))
    return found


def lcov_names(text: str) -> set[str]:
    """Returns the mangled names, to demangle them all at once."""
    lines = (line for line in text.splitlines() if line.startswith("FNDA:"))
    return {lcov_name(line.partition(",")[2]) for line in lines}


def lcov_name(name: str) -> str:
    """Returns a name without the file that llvm-cov puts before names of internal linkage."""
    return name.rpartition(":")[2]


def reached_by_llvm(
    document: bytes, root: Path, names: Mapping[str, str] | None = None
) -> Iterator[Function]:
    """Parses the output of `llvm-cov export`; `names` maps mangled names to demangled ones."""
    for export in _decode(document, _Llvm, "llvm-cov").data:
        for function in export.functions:
            path = path_below(Path(function.filenames[0]), root) if function.filenames else None
            if path is None or function.count == 0:
                continue
            # llvm-cov puts the file name before functions with internal linkage.
            mangled = function.name.rpartition(":")[2]
            line = function.regions[0][0] if function.regions else 0
            yield Function(path, (names or {}).get(mangled, mangled), line)


def llvm_names(document: bytes) -> list[str]:
    """Returns the mangled names in a document, to demangle them all at once."""
    exports = _decode(document, _Llvm, "llvm-cov").data
    return sorted({f.name.rpartition(":")[2] for export in exports for f in export.functions})


def _gcov_files(documents: bytes, root: Path) -> Iterator[tuple[str, _GcovFile]]:
    """Yields the files below the root, one or more times each."""
    for line in documents.splitlines():
        if not line.strip():
            continue
        found = _decode(line, _Gcov, "gcov")
        base = Path(found.current_working_directory or root)
        for file in found.files:
            if (path := path_below(base / file.file, root)) is not None:
                yield path, file


def _number(text: str) -> int:
    if not text.isdecimal():
        raise InvalidSetting("llvm-cov", f"cannot read the output of llvm-cov: {text[:50]!r}")
    return int(text)


def _decode(data: bytes, kind: Callable[..., Any], tool: str) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise InvalidSetting(tool, f"cannot read the output of {tool}: {error}") from None


def path_below(path: Path, root: Path) -> str | None:
    """Returns a path relative to the solver's root, or None for system headers."""
    try:
        return Path(*_resolved(path).parts).relative_to(_resolved(root)).as_posix()
    except ValueError:
        return None


def _resolved(path: Path) -> Path:
    """Removes `..` without reading the disk: the checkout may no longer exist."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and len(parts) > 1:
            parts.pop()
        elif part != "..":
            parts.append(part)
    return Path(*parts)
