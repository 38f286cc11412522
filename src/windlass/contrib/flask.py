"""Windlass in a Flask application: an extension with a client for all requests.

```python
queue = Windlass()


def create_app() -> Flask:
    app = Flask(__name__)
    queue.init_app(app)
    return app
```

Settings of the application: `WINDLASS_SERVER` and `WINDLASS_TOKEN`, by default those of
`windlass.Client()`; `WINDLASS_TIMEOUT`, the longest time for a submission; and `WINDLASS_SPOOL`, a
folder for jobs that no server accepts in that time.
"""

import threading
from typing import Any, Final

from windlass.domain.values.errors import Conflict, needs
from windlass.front import Client, get_test_client

with needs("flask"):
    from flask import Flask, current_app

NAME: Final = "windlass"
SETTINGS: Final = ("SERVER", "TOKEN", "TIMEOUT", "SPOOL")


class Windlass:
    """The extension; one serves any number of applications."""

    def __init__(self, app: Flask | None = None, client: Client | None = None) -> None:
        """Creates the extension; with a `client`, all applications use it, not their settings."""
        self._given = client
        self._lock = threading.Lock()
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Adds the extension to an application. It contacts no server before the first use."""
        app.extensions[NAME] = self
        for name in SETTINGS:
            app.config.setdefault(f"WINDLASS_{name}", None)

    @property
    def client(self) -> Client:
        """The client of the current application, opened when it is first used.

        In a test with the fixture `windlass` it is that of the test.
        """
        test = get_test_client()
        if test is not None:
            return test
        if self._given is not None:
            return self._given
        app: Flask = current_app._get_current_object()  # type: ignore[attr-defined] # noqa: SLF001
        if app.extensions.get(NAME) is not self:
            raise Conflict("no_extension", "call Windlass.init_app(app) for this application")
        with self._lock:
            key = f"{NAME}.client"
            if key not in app.extensions:
                server, token, timeout, spool = (
                    app.config[f"WINDLASS_{name}"] for name in SETTINGS
                )
                app.extensions[key] = Client(
                    server, token, timeout=timeout, spool=spool,
                    on_unavailable="spool" if spool else "raise",
                )  # fmt: skip
            found: Client = app.extensions[key]
            return found

    def submit(self, task: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Submits a call of a task, as `client.submit` does."""
        return self.client.submit(task, *args, **kwargs)
