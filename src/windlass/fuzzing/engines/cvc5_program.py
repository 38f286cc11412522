"""cvc5 as a program, for its wheel brings a Python API only.

It is run by its path, not as a module, so that nothing but cvc5 is imported: thousands of
short calls are made of it.
"""

import sys


def main() -> int:
    """Carry out the commands of one file and say what they answer, as the real one does."""
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
