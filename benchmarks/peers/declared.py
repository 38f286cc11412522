"""Tasks of peers that are bound to a broker while their module is imported."""

import importlib
import os
import sys
from types import ModuleType

URL = "WINDLASS_PEER_URL"  # where such a module finds its broker


def declared_on(module: str, url: str) -> ModuleType:
    """The module, its tasks bound to this address."""
    os.environ[URL] = url
    known = sys.modules.get(module)
    return importlib.import_module(module) if known is None else importlib.reload(known)
