"""Images of containers: fetched when a job needs one, and what a failure means."""

import asyncio
import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from windlass.domain.matching.isolation import Pull
from windlass.worker.isolation.confinement import ConfinementFailed
from windlass.worker.isolation.container.engine import Engine, EngineAway, Ran

SETTINGS: Final = "config.json"  # docker's file with credentials
DEFAULT_REGISTRY: Final = "docker.io"
_HUB: Final = "https://index.docker.io/v1/"  # Docker Hub's name in docker's settings

# What registries and engines print when trying again would not help.
_WRONG: Final = re.compile(
    "manifest unknown|name unknown|not found|not known|no such image|denied|unauthorized|"
    "authentication required|invalid reference|invalid username|did not resolve to an alias|"
    "no matching manifest|no image found in|x509|repository does not exist|unsupported",
    re.IGNORECASE,
)
_FULL: Final = re.compile("no space left|disk quota", re.IGNORECASE)


class Images:
    """The images of one engine. If two jobs need the same one, it is fetched once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._locks: dict[str, asyncio.Lock] = {}

    async def provide(
        self, image: str, pull: Pull, folder: Path, credentials: str | None,
        note: Callable[[str], object],
    ) -> None:  # fmt: skip
        """Makes sure that the image is present; raises `ConfinementFailed`.

        `folder` is private: it holds the credentials while the image is fetched.
        """
        async with self._locks.setdefault(image, asyncio.Lock()):
            if pull != "always" and await self._is_here(image):
                return
            if pull == "never":
                message = f"image {image} is not on this worker, and pull is never"
                raise ConfinementFailed("configuration", message)
            await self._fetch(image, folder, credentials, note)

    async def _is_here(self, image: str) -> bool:
        ran = await self._engine.run("image", "inspect", "--format", "{{.Id}}", image)
        if ran.code != 0 and not _WRONG.search(ran.errors):
            raise EngineAway(f"{self._engine.kind} does not answer: {ran.reason}")
        return ran.code == 0

    async def _fetch(
        self, image: str, folder: Path, credentials: str | None, note: Callable[[str], object]
    ) -> None:
        note(f"fetching the image {image}")
        arguments, env = ["pull", "--quiet"], {}
        if credentials is not None:
            place = folder / SETTINGS
            settings = auth_settings(credentials, image, self._engine.kind == "podman")
            write_private(place, settings)
            if self._engine.kind == "podman":
                arguments += ["--authfile", str(place)]
            else:
                env = {"DOCKER_CONFIG": str(folder)}
        try:
            ran = await self._engine.run(*arguments, image, longest_s=None, env=env)
        finally:
            (folder / SETTINGS).unlink(missing_ok=True)
        if ran.code != 0:
            raise failure_of(image, ran)


def failure_of(image: str, ran: Ran) -> ConfinementFailed:
    """Returns what a failed pull means: a wrong description, or something temporary."""
    message = f"cannot fetch the image {image}: {ran.reason}"
    if _FULL.search(ran.errors):
        return ConfinementFailed("resource", message)
    if _WRONG.search(ran.errors):
        return ConfinementFailed("configuration", message)
    return ConfinementFailed("network", message)


def registry_of(image: str) -> str:
    """Returns the registry that an image comes from."""
    first, slash, _ = image.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return first
    return DEFAULT_REGISTRY


def auth_settings(credentials: str, image: str, podman: bool) -> str:
    """Returns the settings file for a secret: `USER:PASSWORD`, or the text of such a file."""
    if credentials.lstrip().startswith("{"):
        return credentials
    registry = registry_of(image)
    if registry == DEFAULT_REGISTRY and not podman:
        registry = _HUB
    auth = base64.b64encode(credentials.encode()).decode()
    return json.dumps({"auths": {registry: {"auth": auth}}})


def write_private(path: Path, text: str) -> None:
    """Writes a file that only this user can read."""
    path.touch(mode=0o600, exist_ok=True)
    path.write_text(text, "utf-8", "surrogateescape")
