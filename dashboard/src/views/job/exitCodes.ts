const SIGNALS: Record<number, string> = {
  1: "SIGHUP: its terminal went away",
  2: "SIGINT: somebody interrupted it",
  4: "SIGILL: it ran an instruction that the processor does not know",
  6: "SIGABRT: it gave up by itself, often after a failed assertion",
  7: "SIGBUS: it used memory that is not there, such as a file that became shorter",
  8: "SIGFPE: it divided by zero or the like",
  9: "SIGKILL: it was killed, often because memory ran out",
  11: "SIGSEGV: it used memory that is not its own",
  13: "SIGPIPE: nobody read what it wrote",
  15: "SIGTERM: it was told to stop",
  24: "SIGXCPU: it used more CPU time than it may",
  25: "SIGXFSZ: it wrote a larger file than it may",
};

/** Returns what an exit code usually means; nothing where only the program knows. */
export function explained(code: number): string | undefined {
  if (code === 126) return "Exit code 126: the shell found the program, but could not start it.";
  if (code === 127) return "Exit code 127: the shell did not find the program.";
  const signal = SIGNALS[code - 128];
  return signal && `Exit code ${code} means ${signal}.`;
}
