"""What a worker has left: counting many at once equals asking one by one."""

from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.matching.room import MANY, Room
from windlass.domain.matching.shapes import Shape

AMOUNTS = st.fixed_dictionaries(
    {},
    optional={
        "cpus": st.integers(0, 4),  # 0: it takes none where jobs share processors
        "gpus": st.integers(1, 4),
        "licences": st.integers(1, 4),
    },
)
SHAPES = st.builds(
    Shape,
    namespace=st.sampled_from("ab"),
    queue=st.sampled_from("pq"),
    task=st.just("t"),
    resources=AMOUNTS.map(lambda amounts: tuple(sorted(amounts.items()))),
    apart=st.sampled_from([None, "x", "y"]),
)
WORKERS = st.fixed_dictionaries(
    {"system:cpus": st.integers(0, 9), "system:gpus": st.integers(0, 3)},
    optional={"resource:licences": st.integers(0, 9), "system:shares": st.just(value=True)},
)


@given(WORKERS, st.lists(SHAPES, max_size=4), SHAPES, st.integers(0, 3), st.none() | SHAPES)
def test_so_many_fit_as_can_be_taken_one_by_one(
    metadata: dict[str, object],
    held: list[Shape],
    shape: Shape,
    per_worker: int,
    kept: Shape | None,
) -> None:
    room = Room(metadata, kept)
    for other in held:
        room.take(other)
    most = room.fits(shape, per_worker)
    taken = 0
    while taken < 20 and room.lacks(shape, per_worker) is None:
        room.take(shape)
        taken += 1
    assert taken == min(most, 20)


def test_what_is_lacking_is_said_in_words() -> None:
    room = Room({"system:memory": 8 * 2**30, "system:cpus": 4})
    large = Shape("n", "q", "t", resources=(("memory", 6 * 2**30),))
    assert room.lacks(large) is None
    room.take(large)
    lack = room.lacks(large)
    assert lack is not None
    assert lack.text == "needs memory 6 GiB, has 2 GiB of 8 GiB free"
    alone = Shape("n", "q", "t", apart="db")
    room.take(alone)
    apart = room.lacks(alone)
    assert apart is not None
    assert "apart=db" in apart.text
    full = room.lacks(Shape("n", "q", "t"), 2)
    assert full is not None
    assert full.text == "holds 2 jobs of queue q, the most for one worker"


def test_a_shape_without_needs_fits_any_number_of_times() -> None:
    assert Room({}).fits(Shape("n", "q", "t")) == MANY
