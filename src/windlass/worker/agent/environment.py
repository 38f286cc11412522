"""What jobs see of the agent's environment: a short list, never its credentials."""

import os
from collections.abc import Iterable, Mapping
from typing import Final

# Names that programs need to find their files and speak their language.
KEPT: Final = frozenset({
    "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "PYTHONPATH", "SHELL",
    "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV",
})  # fmt: skip
KEPT_STARTS: Final = ("LC_", "CUDA_", "NVIDIA_", "GST_")


def job_environment(
    environ: Mapping[str, str], marker: Mapping[str, str], more: Iterable[str] = ()
) -> dict[str, str]:
    """Returns the environment every job starts from; `more` names variables to pass on as well."""
    named = KEPT.union(more)
    kept = {
        name: value
        for name, value in environ.items()
        if (name in named or name.startswith(KEPT_STARTS)) and not name.startswith("WINDLASS_")
    }
    kept.setdefault("PATH", os.defpath)
    return {**kept, **marker}
