"""Functions that are tasks of their own."""

import windlass


@windlass.task(name="thumbs.make")
def make(width: int, height: int = 2, *, colour: str = "grey") -> str:
    return f"{width}x{height} {colour} for job {windlass.current().job}"


@windlass.task(name="thumbs.wait", secrets="TOKEN")
async def wait(*names: str) -> list[str]:
    return list(names)
