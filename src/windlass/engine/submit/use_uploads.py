"""Uploaded files that submitted jobs need: recorded with the jobs, which keep them."""

from collections.abc import Sequence

from windlass.domain.rows.files import UPLOADED, ArtifactRow
from windlass.domain.values.errors import InvalidInput
from windlass.engine.submit.resolve_references import GraphJob
from windlass.engine.transaction.unit_of_work import Work


async def use_uploads(work: Work, fresh: Sequence[GraphJob]) -> list[ArtifactRow]:
    """Returns the rows of the uploads that these jobs need.

    Raises `InvalidInput` if the job's namespace does not have one: uploads of other namespaces do
    not exist for it.
    """
    rows: list[ArtifactRow] = []
    needy = [draft for draft in fresh if draft.job.uploads]
    for namespace in sorted({draft.job.shape.namespace for draft in needy}):
        mine = [draft for draft in needy if draft.job.shape.namespace == namespace]
        digests = sorted({digest for draft in mine for digest in draft.job.uploads})
        found = await work.tx.files.use_uploads(namespace, digests, work.now)
        for draft in mine:
            for digest in draft.job.uploads:
                upload = found.get(digest)
                if upload is None:
                    field = f"jobs[{draft.index}].args"
                    raise InvalidInput(field, f"files uploaded to namespace {namespace}", digest)
                row = ArtifactRow(
                    draft.id, UPLOADED, digest, digest, upload.size, upload.content_type
                )
                rows.append(row)
    return rows
