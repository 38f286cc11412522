"""Asks gdb for the stack of a program that a signal ends, if no sanitizer prints one.

The program runs a second time, in the debugger. That takes a fraction of a second, so only triage
asks for it, never the fuzzing itself.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from windlass_fuzz.config.finding_settings import SignatureSettings
from windlass_fuzz.engines.frames import Frame, own_functions
from windlass_fuzz.engines.tool_runner import ToolRunner
from windlass_fuzz.processes.runner import Limits

ELF: Final = b"\x7fELF"
MARK: Final = "windlass-frame"
FULL: Final = "windlass-full"  # there is no room on the stack
DEEPEST: Final = 1_000
RUNS: Final = 5  # attempts until it fails: some failures depend on addresses or luck
STARTUP_MS: Final = 20_000  # for reading the symbols of a large program
SEPARATOR: Final = "\x1f"
SCRIPT: Final = f"""\
set pagination off
set confirm off
set width 0
set style enabled off
set startup-with-shell off
set disable-randomization off
handle SIGALRM SIGPIPE SIGCHLD nostop noprint pass
python
import gdb
try:
    gdb.execute("set debuginfod enabled off")
except gdb.error:
    pass
frame = None
for _ in range({RUNS}):
    gdb.execute("run")
    try:
        frame = gdb.newest_frame()
        break
    except gdb.error:
        pass
try:
    beyond = int(gdb.parse_and_eval("(long)$_siginfo._sifields._sigfault.si_addr - (long)$sp"))
    signal = int(gdb.parse_and_eval("$_siginfo.si_signo"))
    if signal == 11 and -0x10000 <= beyond <= 0x1000000:
        gdb.write("\\n{FULL}\\n")
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
    """Returns the functions on the stack, innermost first; empty if gdb cannot tell."""
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
    return own_functions(_frames(output), rules, overflow=FULL in output.splitlines())


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
