"""Compiles `reporter.c` with clang and writes its machine code into `reporter.py`.

python -m tests.worker.isolation.build_reporter
"""

import base64
import hashlib
import re
import subprocess
import tempfile
import textwrap
from pathlib import Path
from typing import Final

from windlass.worker.isolation import reporter

MODULE: Final = Path(reporter.__file__)
SOURCE: Final = MODULE.with_suffix(".c")
FLAGS: Final = (
    "-Os", "-c", "-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-fPIE",
    "-fno-asynchronous-unwind-tables", "-fomit-frame-pointer", "-fno-jump-tables", "-Wall",
    "-Wextra", "-Werror",
)  # fmt: skip
OF_MACHINE: Final = {"x86_64": ("-mno-red-zone",), "aarch64": ("-mcmodel=tiny",)}


def digest_of_source() -> str:
    """What `reporter.py` says it was made from."""
    return hashlib.sha256(SOURCE.read_bytes()).hexdigest()


def compiler() -> str:
    """The version of clang here, without the names of packages."""
    said = subprocess.run(["clang", "--version"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"clang version [0-9.]+", said)
    return said.splitlines()[0] if found is None else found[0]


def compile_for(machine: str) -> bytes:
    """The machine code, which must not refer to anything outside of itself."""
    with tempfile.TemporaryDirectory() as folder:
        made, code = Path(folder, "reporter.o"), Path(folder, "code")
        target = f"--target={machine}-linux-gnu"
        words = ["clang", target, *FLAGS, *OF_MACHINE[machine], str(SOURCE), "-o", str(made)]
        subprocess.run(words, check=True)
        found = subprocess.run(
            ["llvm-objdump", "-r", "-h", str(made)], check=True, capture_output=True, text=True
        ).stdout
        if "RELOCATION" in found or re.search(r"\.(rodata|data|bss)", found):
            raise ValueError(f"expected code without data, got\n{found}")
        copy = ["llvm-objcopy", "-O", "binary", "--only-section=.text", str(made), str(code)]
        subprocess.run(copy, check=True)
        return code.read_bytes()


def main() -> None:
    """Writes the module anew."""
    lines = [f'MADE_FROM: Final = "{digest_of_source()}"', f'MADE_BY: Final = "{compiler()}"']
    lines.append("CODE: Final = {")
    for machine in OF_MACHINE:
        text = base64.b64encode(compile_for(machine)).decode()
        lines += [f'    "{machine}": (', *(f'        "{row}"' for row in textwrap.wrap(text, 88))]
        lines.append("    ),")
    text = MODULE.read_text()
    start, end = text.index("MADE_FROM: Final"), text.index("}\n", text.index("CODE: Final")) + 2
    MODULE.write_text(text[:start] + "\n".join([*lines, "}"]) + "\n" + text[end:])


if __name__ == "__main__":
    main()
