"""A command-line program for cvc5, whose wheel contains only a Python API.

It runs by path, not as a module, so that it imports nothing but cvc5: typefuzz makes thousands
of short calls.
"""

import sys


def main() -> int:
    """Runs the commands of one file and prints the answers, as the real program does."""
    import cvc5

    solver = cvc5.Solver()
    symbols = cvc5.SymbolManager(solver)
    parser = cvc5.InputParser(solver, symbols)
    try:
        parser.setFileInput(cvc5.InputLanguage.SMT_LIB_2_6, sys.argv[-1])
        while not (command := parser.nextCommand()).isNull():
            sys.stdout.write(str(command.invoke(solver, symbols)))
    except Exception as error:
        sys.stdout.write(f'(error "{error}")\n')
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
