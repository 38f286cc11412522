"""Asks gdb for the stack of a program that a signal ends or that hangs, if nothing prints one.

The program runs a second time, in the debugger. That takes a fraction of a second, so only triage
asks for it, never the fuzzing itself.
"""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from windlass_fuzz.config.finding_settings import SignatureSettings
from windlass_fuzz.engines.frames import Frame, on_all, own_functions, own_stack
from windlass_fuzz.engines.tool_runner import ToolRunner
from windlass_fuzz.processes.runner import Limits

ELF: Final = b"\x7fELF"
MARK: Final = "windlass-frame"
FULL: Final = "windlass-full"  # there is no room on the stack
HUNG: Final = "windlass-hung"  # the stack of a program that hangs follows
SAMPLES: Final = 3  # stacks of a program that hangs
WAITS_MS: Final = (
    10_000  # after its time limit, a program that needs no processor counts as hanging
)
DEEPEST: Final = 1_000
RUNS: Final = 5  # attempts until it fails: some failures depend on addresses or luck
STARTUP_MS: Final = 20_000  # for reading the symbols of a large program
SEPARATOR: Final = "\x1f"
SCRIPT: Final = """\
set pagination off
set confirm off
set width 0
set style enabled off
set startup-with-shell off
set disable-randomization off
handle SIGALRM SIGPIPE SIGCHLD nostop noprint pass
handle SIGXCPU SIGINT stop nopass
python
import gdb, os, resource, signal, subprocess
# A program that hangs is stopped once it has used its time, and then after each second.
resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, resource.getrlimit(resource.RLIMIT_CPU)[1]))
signal.signal(signal.SIGXCPU, signal.SIG_IGN)
stop = f"sleep WAITS_S; for n in 1 2 3; do kill -INT {os.getpid()}; sleep 1; done"
subprocess.Popen(["sh", "-c", stop])
def show():
    frame = gdb.newest_frame()
    for _ in range(DEEPEST):
        if frame is None or not frame.is_valid():
            break
        table = frame.find_sal().symtab
        place = gdb.solib_name(frame.pc()) or (table.filename if table else "")
        inlined = "inlined" if frame.type() == gdb.INLINE_FRAME else ""
        words = ["MARK", frame.name() or "", place, inlined]
        gdb.write("\\n" + "\\x1f".join(words) + "\\n")
        try:
            frame = frame.older()
        except gdb.error:
            break
try:
    gdb.execute("set debuginfod enabled off")
except gdb.error:
    pass
running = False
for _ in range(RUNS):
    gdb.execute("run")
    try:
        running = bool(gdb.newest_frame())
        break
    except gdb.error:
        pass
number = 0
try:
    number = int(gdb.parse_and_eval("$_siginfo.si_signo"))
    beyond = int(gdb.parse_and_eval("(long)$_siginfo._sifields._sigfault.si_addr - (long)$sp"))
    if number == signal.SIGSEGV and -0x10000 <= beyond <= 0x1000000:
        gdb.write("\\nFULL\\n")
except gdb.error:
    pass
try:
    for _ in range(SAMPLES if number in (signal.SIGXCPU, signal.SIGINT) else 0):
        gdb.write("\\nHUNG\\n")
        show()
        gdb.execute("continue")
    if running and number not in (signal.SIGXCPU, signal.SIGINT):
        show()
except (gdb.error, KeyboardInterrupt):
    pass
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
    script.write_text(_script(timeout_ms))
    words = [gdb, "--batch", "--nx", "--quiet", "-x", str(script), "--args", *argv]
    try:
        _, output = await tools.run(words, Limits(timeout_ms + STARTUP_MS))
    finally:
        script.unlink()
    _, *hung = output.split(f"\n{HUNG}\n")
    if hung:
        stacks = [own_stack(_frames(one), rules, overflow=False) for one in hung]
        return on_all(stacks)[: rules.frames]
    return own_functions(_frames(output), rules, overflow=FULL in output.splitlines())


def _script(timeout_ms: int) -> str:
    """Returns the debugger's commands for a program with this time limit."""
    values = {
        "LIMIT_S": max(timeout_ms // 1000, 1), "WAITS_S": (timeout_ms + WAITS_MS) // 1000,
        "DEEPEST": DEEPEST, "RUNS": RUNS, "SAMPLES": SAMPLES, "MARK": MARK, "FULL": FULL,
        "HUNG": HUNG,
    }  # fmt: skip
    return re.sub("|".join(values), lambda found: str(values[found[0]]), SCRIPT)


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
