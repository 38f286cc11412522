"""Prints what everybody is answered on every route: `make rights-table`."""

import tempfile
from pathlib import Path

from tests.server.rights.table import call_all, complaint, drawn
from tests.server.rights.world import standing_world
from tests.support.running import run


async def main() -> int:
    """Returns how many cells differ from the declared rights."""
    with tempfile.TemporaryDirectory() as folder:
        async with standing_world(Path(folder)) as world:
            cells = await call_all(world)
    print(drawn(cells))  # noqa: T201
    wrong = [cell for cell in cells if not cell.is_right]
    for cell in wrong:
        print(complaint(cell))  # noqa: T201
    return len(wrong)


if __name__ == "__main__":
    raise SystemExit(min(run(main()), 1))
