"""Asks gdb for the stack of a program that a signal ends, where no sanitizer prints one.

The program runs a second time, in the debugger. That takes a part of a second, so only triage
asks for it, never the fuzzing itself.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from windlass.fuzzing.config.finding_settings import SignatureSettings
from windlass.fuzzing.engines.frames import DEEPEST, Frame, own_functions
from windlass.fuzzing.engines.tool_runner import ToolRunner
from windlass.fuzzing.processes.runner import Limits

ELF: Final = b"\x7fELF"
MARK: Final = "windlass-frame"
STARTUP_MS: Final = 20_000  # for reading the symbols of a large program
SEPARATOR: Final = "\x1f"
SCRIPT: Final = f"""\
set pagination off
set confirm off
set width 0
set style enabled off
set startup-with-shell off
handle SIGALRM SIGPIPE SIGCHLD nostop noprint pass
python
import gdb
try:
    gdb.execute("set debuginfod enabled off")
except gdb.error:
    pass
gdb.execute("run")
frame = None
try:
    frame = gdb.newest_frame()
except gdb.error:
    pass
for _ in range({DEEPEST}):
    if frame is None or not frame.is_valid():
        break
    table = frame.find_sal().symtab
    place = gdb.solib_name(frame.pc()) or (table.filename if table else "")
    inlined = "inlined" if frame.type() == gdb.INLINE_FRAME else ""
    gdb.write("\\n" + "\\x1f".join(["{MARK}", frame.name() or "", place, inlined]) + "\\n")
    try:
        frame = frame.older()
    except gdb.error:
        break
end
kill
"""


async def stack_of(
    tools: ToolRunner, argv: Sequence[str], timeout_ms: int, rules: SignatureSettings
) -> tuple[str, ...]:
    """Returns the functions on the stack, innermost first; nothing if gdb cannot tell."""
    program = shutil.which(argv[0])
    gdb = shutil.which("gdb")
    if rules.debugger == "none" or gdb is None or program is None or not _is_elf(Path(program)):
        return ()
    script = tools.path("gdb")
    script.write_text(SCRIPT)
    words = [gdb, "--batch", "--nx", "--quiet", "-x", str(script), "--args", *argv]
    try:
        _, output = await tools.run(words, Limits(timeout_ms + STARTUP_MS))
    finally:
        script.unlink()
    return own_functions(_frames(output), rules)


def _frames(output: str) -> list[Frame]:
    found = []
    for line in output.splitlines():
        parts = line.split(SEPARATOR)
        if parts[0] == MARK and len(parts) == 4:
            found.append(Frame(parts[1] or "??", parts[2], parts[3] == "inlined"))
    return found


def _is_elf(program: Path) -> bool:
    """Returns whether a file is a program: gdb cannot run scripts."""
    try:
        with program.open("rb") as file:
            return file.read(len(ELF)) == ELF
    except OSError:
        return False
