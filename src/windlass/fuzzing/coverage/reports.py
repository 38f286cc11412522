"""Parses the output of gcov and llvm-cov for one run into the functions it reached."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from windlass.fuzzing.coverage.coverage_map import Function
from windlass.fuzzing.errors import InvalidSetting


class _GcovFunction(msgspec.Struct):
    demangled_name: str
    start_line: int
    execution_count: int


class _GcovFile(msgspec.Struct):
    file: str
    functions: list[_GcovFunction]


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
    for line in documents.splitlines():
        if not line.strip():
            continue
        found = _decode(line, _Gcov, "gcov")
        base = Path(found.current_working_directory or root)
        for file in found.files:
            path = _below(base / file.file, root)
            if path is None:
                continue
            for function in file.functions:
                if function.execution_count > 0:
                    yield Function(path, function.demangled_name, function.start_line)


def reached_by_llvm(
    document: bytes, root: Path, names: Mapping[str, str] | None = None
) -> Iterator[Function]:
    """Parses the output of `llvm-cov export`; `names` maps mangled names to demangled ones."""
    for export in _decode(document, _Llvm, "llvm-cov").data:
        for function in export.functions:
            path = _below(Path(function.filenames[0]), root) if function.filenames else None
            if path is None or function.count == 0:
                continue
            # llvm-cov puts the file name before functions with internal linkage.
            mangled = function.name.rpartition(":")[2]
            line = function.regions[0][0] if function.regions else 0
            yield Function(path, (names or {}).get(mangled, mangled), line)


def llvm_names(document: bytes) -> list[str]:
    """Returns the mangled names in a document, to demangle them in one go."""
    exports = _decode(document, _Llvm, "llvm-cov").data
    return sorted({f.name.rpartition(":")[2] for export in exports for f in export.functions})


def _decode(data: bytes, kind: Callable[..., Any], tool: str) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise InvalidSetting(tool, f"cannot read the output of {tool}: {error}") from None


def _below(path: Path, root: Path) -> str | None:
    """Returns a path relative to the solver's root, or None for system headers."""
    try:
        return Path(*_resolved(path).parts).relative_to(_resolved(root)).as_posix()
    except ValueError:
        return None


def _resolved(path: Path) -> Path:
    """Removes `..` without looking at the disk: the checkout may not exist any more."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and len(parts) > 1:
            parts.pop()
        elif part != "..":
            parts.append(part)
    return Path(*parts)
