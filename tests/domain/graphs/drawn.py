"""Graphs for tests: described briefly, or drawn by hypothesis."""

from collections.abc import Mapping, Sequence
from random import Random

from hypothesis import strategies as st

from windlass.domain.graphs.graph import Graph, GraphBuilder
from windlass.domain.graphs.groups import stem_of


def graph_of(needs: Mapping[str, Sequence[str]]) -> Graph:
    """A graph of jobs 1, 2, … with these names, each with those it waits for."""
    ids = {name: number for number, name in enumerate(needs, 1)}
    builder = GraphBuilder()
    for name, others in needs.items():
        builder.add(ids[name], name, stem_of(name), [ids[other] for other in others])
    return builder.build()


LETTERS = "abcdefgh"


@st.composite
def graphs(draw: st.DrawFn, most: int = 400) -> Graph:
    """A graph of any form: wide, deep, with few or many names, some of them in circles."""
    jobs = draw(st.sampled_from([most, most // 2, 150, 40, 3, 0]))
    stems = draw(st.sampled_from([5, 8, 1, 2]))
    reach = draw(st.sampled_from([most, 40, 3, 1]))
    degree = draw(st.sampled_from([0, 1, 3]))
    named = draw(st.sampled_from(["step-{}", "m[{}]", "{}"]))
    chance = Random(draw(st.integers(0, 2**32)))
    builder = GraphBuilder()
    for number in range(1, jobs + 1):
        name = f"{chance.choice(LETTERS[:stems])}{named.format(number)}"
        low = max(1, number - reach)
        pool = range(low, number)
        needs = chance.sample(pool, min(len(pool), chance.randint(0, degree)))
        builder.add(number, name, stem_of(name), needs)
    return builder.build()
