"""The environment of programs that come from a repository: builds, targets, generators of seeds.

Anyone who can push a commit, or open a pull request, decides what they do.
"""

import os
import re
from typing import Final

_CREDENTIAL: Final = re.compile(
    r"(?:.*_)?(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|APIKEY"
    r"|(?:API|ACCESS|PRIVATE|SIGNING)_KEY)(?:_.*)?"
    # Our own variables, those of the bucket, and files with which a step of GitHub Actions changes
    # later ones.
    r"|(?:WINDLASS|AWS|ACTIONS)_.*|GITHUB_(?:ENV|PATH|OUTPUT|STATE|STEP_SUMMARY)",
    re.IGNORECASE,
)
PASSED: Final = "WINDLASS_FUZZ_PASS_ENV"  # names of variables that builds and targets need


def inherited_environment() -> dict[str, str]:
    """Returns our environment without anything like a credential, unless it is passed by name."""
    passed = {name.strip() for name in os.environ.get(PASSED, "").split(",")}
    return {
        name: value
        for name, value in os.environ.items()
        if name in passed or not _CREDENTIAL.fullmatch(name)
    }
