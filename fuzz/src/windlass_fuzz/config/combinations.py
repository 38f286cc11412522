"""The combinations of a solver's matrix: each is a solver of its own for builders and engines."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from windlass_fuzz.config.matrix_settings import Chosen, Names, choose_combinations
from windlass_fuzz.config.solver_file import BuildSettings, Solver

PLAIN: Final = ""  # the name of the only combination of a file without a matrix


class Combination(NamedTuple):
    """One combination. `solver` is the solver file as it is for this combination alone.

    `env` is for its runs. `corpus` names the inputs that it shares with others of its target.
    """

    name: str
    names: Names
    solver: Solver
    env: Mapping[str, str] = {}
    corpus: str = ""

    @property
    def target(self) -> str:
        """Returns the target, or else what the engine runs: a file of the build."""
        return self.names.target or self.program

    @property
    def program(self) -> str:
        """Returns the file of the build that the engine runs."""
        return str(self.solver.engine.get("binary") or self.solver.binaries[0])

    @property
    def engine(self) -> str:
        """Returns the name of the fuzzing engine."""
        return str(self.solver.engine["name"])


def combinations_of(solver: Solver) -> tuple[Combination, ...]:
    """Returns the combinations in the order of the file; without a matrix the only one."""
    if solver.matrix is None:
        return (Combination(PLAIN, Names(), solver),)
    return tuple(_combination(solver, one) for one in choose_combinations(solver.matrix))


def combination_names(solver: Solver) -> tuple[str, ...]:
    """Returns the names of the matrix's combinations; none without a matrix."""
    return tuple(one.name for one in combinations_of(solver) if one.name)


def one_of_each_target(solver: Solver) -> list[Combination]:
    """Returns the first combination of each target: the coverage build has no sanitizers."""
    first: dict[str, Combination] = {}
    for one in combinations_of(solver):
        first.setdefault(one.names.target, one)
    return list(first.values())


def for_coverage(solver: Solver) -> Solver:
    """Returns the solver as it is for the coverage build, which all combinations share.

    It makes the files of `binaries`; those with `{target}`, once for each target.
    """
    if solver.matrix is None:
        return solver
    targets = dict.fromkeys(one.names.target for one in combinations_of(solver))
    binaries = [
        _filled(name, {"target": target, "sanitizer": "coverage", "engine": "coverage"})
        for target in targets
        for name in solver.binaries
    ]
    return msgspec.structs.replace(solver, binaries=tuple(dict.fromkeys(binaries)))


def _combination(solver: Solver, chosen: Chosen) -> Combination:
    names, own = chosen
    words = {"target": names.target, "sanitizer": names.sanitizer, "engine": names.engine}
    about = {f"WINDLASS_FUZZ_{axis.upper()}": name for axis, name in words.items()}
    env = {**own.env, **about, "WINDLASS_FUZZ_COMBINATION": names.joined}
    seeds = {
        field: _filled(getattr(solver.seeds, field), words)
        for field in ("corpora", "dictionaries", "generate")
    }
    alone = msgspec.structs.replace(
        solver, matrix=None, build=_build(solver.build, own.flags, env, words),
        binaries=_filled(own.binaries or solver.binaries, words),
        engine=_filled(_engine(solver.engine, own.options), words),
        tests=_filled(own.tests or solver.tests, words),
        coverage=_filled(solver.coverage, words),
        seeds=msgspec.structs.replace(solver.seeds, **seeds),
        input_timeout=own.input_timeout or solver.input_timeout,
        memory=own.memory or solver.memory,
    )  # fmt: skip
    corpus = ".".join(part for part in (names.target or "all", own.format) if part)
    return Combination(names.joined, names, alone, env, corpus)


def _build(
    build: BuildSettings, flags: tuple[str, ...], env: Mapping[str, str], words: Mapping[str, str]
) -> BuildSettings:
    argv = _filled((*build.production, *flags), words)
    return msgspec.structs.replace(build, production=argv, env={**build.env, **env})


def _engine(common: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the options together; those of another engine do not apply."""
    other = own.get("name", common.get("name")) != common.get("name")
    return dict(own) if other else {**common, **own}


def _filled(value: Any, words: Mapping[str, str]) -> Any:
    """Replaces `{target}`, `{sanitizer}` and `{engine}` in all texts of a setting."""
    if isinstance(value, str):
        for name, word in words.items():
            value = value.replace("{" + name + "}", word)
        return value
    if isinstance(value, Mapping):
        return {key: _filled(item, words) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_filled(item, words) for item in value)
    return value
