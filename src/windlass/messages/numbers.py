"""Numbers in messages, with the bounds of the stores, checked where they are decoded."""

from typing import Annotated

from msgspec import Meta

Id = Annotated[int, Meta(ge=1, le=2**62)]  # of a job, workflow, worker or token
NameOrId = Id | str  # of a worker; the name counts before the id
Cursor = Annotated[int, Meta(ge=0, le=2**62)]  # the last id of a page; 0: from the start
Moment = Annotated[int, Meta(ge=0, le=2**62)]  # in ms; 0: unknown
