"""Recognises how a project is built and which harnesses it has, and writes a solver file for it.

The scripts run in a checkout of one commit, so they must not need any file that is not in it. They
build with clang, link each harness with everything that was built, and leave the targets in
`fuzz-out`.
"""

import json
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from windlass_fuzz.errors import InvalidSetting

# A definition: drivers of other tools only declare it.
HARNESS: Final = re.compile(r"\bLLVMFuzzerTestOneInput\s*\([^;{}]*\)\s*\{")
SOURCES: Final = (".c", ".cc", ".cpp", ".cxx")
CPLUSPLUS: Final = SOURCES[1:]
MAX_SOURCES: Final = 20_000  # files that are looked at
MAX_SOURCE_BYTES: Final = 1024 * 1024
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./+][A-Za-z0-9_./+-]*")
OUTPUT: Final = "fuzz-out"
OSS_FUZZ: Final = "OSS-Fuzz"
CORPUS: Final = re.compile(r"(?:^|[_-])(?:corpus|corpora|seeds?)(?:$|[_-])", re.IGNORECASE)

# How each kind of project is built, by the files that give it away; the first one counts.
_OSS_FUZZ: Final = (".clusterfuzzlite/build.sh", "oss-fuzz/build.sh", "ossfuzz/build.sh",
                    "fuzz/oss-fuzz/build.sh", "fuzzing/build.sh")  # fmt: skip
_SYSTEMS: Final = (
    ("CMake", ("CMakeLists.txt",), (
        ('cmake -S . -B fuzz-build -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" '
        '-DCMAKE_C_FLAGS="$CFLAGS" -DCMAKE_CXX_FLAGS="$CXXFLAGS" -DBUILD_SHARED_LIBS=OFF '
        "-DBUILD_TESTING=OFF"),
        'cmake --build fuzz-build -j "$JOBS"',
    )),
    ("Meson", ("meson.build",), (
        "meson setup fuzz-build --default-library=static -Db_lundef=false",
        "meson compile -C fuzz-build",
    )),
    ("Autotools", ("configure", "configure.ac", "configure.in"), (
        "[ -x configure ] || autoreconf -fi",
        "./configure --disable-shared --enable-static",
        'make -j "$JOBS"',
    )),
    ("Makefile", ("GNUmakefile", "Makefile", "makefile"), (
        # Programs that cannot be linked with a sanitizer do not matter, unless a target needs them.
        ('make -k -j "$JOBS" CC="$CC" CXX="$CXX" CFLAGS="$CFLAGS" CXXFLAGS="$CXXFLAGS" '
        'LDFLAGS="$CFLAGS" || echo "some parts were not built"'),
    )),
)  # fmt: skip
_FLAGS: Final = """\
export CC=${CC:-clang} CXX=${CXX:-clang++} JOBS=$(getconf _NPROCESSORS_ONLN)
kind='-fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined'
if [ "$WINDLASS_FUZZ_KIND" = coverage ]; then
  kind='-fprofile-instr-generate -fcoverage-mapping -fsanitize=fuzzer-no-link'
fi
export CFLAGS="-g -O1 -fno-omit-frame-pointer $kind" ASAN_OPTIONS=detect_leaks=0
export CXXFLAGS="$CFLAGS"
"""
# Objects are linked if there is no library; those with a `main` are programs. Headers may be
# anywhere, also generated ones. Which system libraries are needed, the project's own build says.
_LINK: Final = """\
parts=$(find . -name '*.a' -not -path './{output}/*')
if [ -z "$parts" ]; then
  for object in $(find . -name '*.o'); do
    nm "$object" 2>/dev/null | grep -q ' T \\(main\\|LLVMFuzzerTestOneInput\\)$' ||
      parts="$parts $object"
  done
fi
mkdir -p {output}
headers=$(find . -name '*.h' -o -name '*.hpp' | sed 's|/[^/]*$||; s|^|-idirafter |' | sort -u)
libraries=
for one in $(
  grep -rhoEs -e '(^|[ "=])-l[A-Za-z0-9_+.-]+' -e '/[^ "]*/lib[A-Za-z0-9_+-]+[.]so[0-9.]*' . \\
    --include=link.txt --include=build.ninja --include='*.pc' --include=Makefile |
    tr -d ' "=' | grep -v "^$PWD/" | sort -u
); do
  echo 'int main(void) {{ return 0; }}' | $CC -x c - -x none "$one" -o {output}/try 2>/dev/null ||
    continue
  libraries="$libraries $one"
done
rm -f {output}/try
"""


class Project(NamedTuple):
    """What was recognised: the build system, its commands, and the harnesses by target."""

    name: str
    system: str
    commands: Sequence[str]
    harnesses: dict[str, str]
    corpora: Sequence[str]

    @property
    def targets(self) -> list[str]:
        return list(self.harnesses)


def recognise(folder: Path) -> Project:
    """Recognises the project in a folder; raises if it has no harness."""
    files = _files_in(folder)
    script = next((one for one in _OSS_FUZZ if one in files), "")
    harnesses = _harnesses(folder, files)
    if not harnesses:
        message = (
            f"{folder} has no harness: no source file defines LLVMFuzzerTestOneInput; write one "
            "(docs/guides/fuzzing.md shows how), or write the solver file by hand"
        )
        raise InvalidSetting("solver", message, str(folder))
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", folder.resolve().name).strip("-._") or "project"
    corpora = _corpora(files)
    if script:
        return Project(name, OSS_FUZZ, _oss_fuzz(script, name), harnesses, corpora)
    for system, marks, commands in _SYSTEMS:
        if any(mark in files for mark in marks):
            return Project(name, system, commands, harnesses, corpora)
    return Project(name, "plain sources", _plain(files, harnesses), harnesses, corpora)


def solver_file(project: Project, repository: str, branch: str) -> str:
    """Returns a solver file; without a bucket, so that it keeps its state on this machine."""
    script = "".join(f"      {line}\n" for line in _script(project).splitlines())
    tests = "".join(f"  - '{path}/*'\n" for path in project.corpora)
    if len(project.harnesses) == 1:
        engine = f"engine: {{name: libfuzzer, binary: {OUTPUT}/{project.targets[0]}}}\n"
    else:
        rows = "".join(
            f"    - {{name: {one}, options: {{binary: {OUTPUT}/{one}}}}}\n"
            for one in project.targets
        )
        engine = f"engine: {{name: libfuzzer}}\nmatrix:\n  targets:\n{rows}"
    return f"""\
# Written by `windlass fuzz init` for a project with {project.system}. Change whatever is wrong.
name: {project.name}
repository: {json.dumps(repository)}
branch: {json.dumps(branch)}
build:
  production:
    - sh
    - -euc
    - &build |
{script}\
  coverage:
    - sh
    - -euc
    - *build
binaries: ['{OUTPUT}/*']
{engine}tests:{" []" if not tests else ""}
{tests}budget: 1h
until_quiet: 15m
"""


def _script(project: Project) -> str:
    """Returns the build script, for both kinds of build."""
    lines = [_FLAGS + "\n".join(project.commands)]
    if project.system == OSS_FUZZ:
        return "\n".join(lines) + "\n"
    lines.append(_LINK.format(output=OUTPUT).rstrip())
    for target, source in project.harnesses.items():
        link = f"-I. -Iinclude -Isrc -Ifuzz-build $headers {source}"
        compiler = "$CXX $CXXFLAGS"
        if not source.endswith(CPLUSPLUS):
            # The parts may be in C++, but the harness is not.
            lines.append(f"$CC $CFLAGS -c {link} -o {OUTPUT}/{target}.o")
            link = f"{OUTPUT}/{target}.o"
        lines.append(
            f"{compiler} -fsanitize=fuzzer {link} -Wl,--start-group $parts -Wl,--end-group "
            f"-Wl,--as-needed $libraries -lm -o {OUTPUT}/{target}"
        )
        if not source.endswith(CPLUSPLUS):
            lines.append(f"rm {OUTPUT}/{target}.o")
    return "\n".join(lines) + "\n"


def _oss_fuzz(script: str, name: str) -> Sequence[str]:
    """Runs the project's own script as OSS-Fuzz does, with the checkout under its usual name."""
    return (
        f'export SRC="$PWD/fuzz-src" OUT="$PWD/{OUTPUT}" WORK="$PWD/fuzz-work"',
        "export LIB_FUZZING_ENGINE=-fsanitize=fuzzer SANITIZER=address FUZZING_LANGUAGE=c++",
        'mkdir -p "$SRC" "$OUT" "$WORK"',
        f'ln -sfn "$PWD" "$SRC/{name}"',
        f"bash -eu {script}",
    )


def _plain(files: Iterable[str], harnesses: dict[str, str]) -> Sequence[str]:
    """Compiles all sources in the top folder and in src; `_LINK` leaves out programs."""
    wanted = [
        one
        for one in files
        if one.endswith(SOURCES) and one not in harnesses.values() and one.count("/") < 2
        and (one.startswith("src/") or "/" not in one)
    ]  # fmt: skip
    compile_one = {".c": "$CC $CFLAGS"}
    return [
        f"{compile_one.get(Path(one).suffix, '$CXX $CXXFLAGS')} -I. -Iinclude -Isrc -c {one} "
        f"-o {one}.o"
        for one in sorted(wanted)
    ]


def current_branch(folder: Path) -> str:
    """Returns the branch that is checked out, or `main`."""
    words = ["git", "-C", str(folder), "symbolic-ref", "--quiet", "--short", "HEAD"]
    return (
        subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip() or "main"
    )


def _files_in(folder: Path) -> list[str]:
    """Returns the files of the newest commit, as builds see no others.

    Leaves out those whose names a shell would read as more than a name.
    """
    words = ["git", "-C", str(folder), "ls-tree", "-r", "-z", "--name-only", "HEAD"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not (folder / ".git").exists():
        message = f"{folder} is not the top folder of a git repository with a commit"
        raise InvalidSetting("solver", message, str(folder))
    return [name for name in done.stdout.split("\0") if _PLAIN.fullmatch(name)][:MAX_SOURCES]


def _harnesses(folder: Path, files: Iterable[str]) -> dict[str, str]:
    """Returns the sources that define a harness, by the name of their target."""
    found: dict[str, str] = {}
    for name in files:
        path = folder / name
        if not name.endswith(SOURCES) or not path.is_file():
            continue
        if path.is_symlink() or path.stat().st_size > MAX_SOURCE_BYTES:
            continue
        if HARNESS.search(path.read_text(errors="replace")):
            stem = re.sub(r"[^A-Za-z0-9_]", "_", path.stem)
            target = stem if stem not in found else re.sub(r"[^A-Za-z0-9_]", "_", name)
            found[target] = name
    return found


def _corpora(files: Iterable[str]) -> list[str]:
    """Returns the folders whose names say that they hold inputs."""
    folders = {str(Path(name).parent) for name in files}
    return sorted(one for one in folders if CORPUS.search(Path(one).name))
