"""A registry of one image, for engines that fetch it: on loopback, with a password."""

import base64
import gzip
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

CONFIG_TYPE: Final = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
MANIFEST_TYPE: Final = "application/vnd.oci.image.manifest.v1+json"


class Registry:
    """Serves `library/box:1` to those who know `credentials`, which are USER:PASSWORD."""

    def __init__(self, archive: bytes, credentials: str) -> None:
        self._expected = f"Basic {base64.b64encode(credentials.encode()).decode()}"
        self.requests: list[str] = []
        layer = gzip.compress(archive, 1)
        config = json.dumps({
            "architecture": "amd64", "os": "linux", "config": {"User": "1000"},
            "rootfs": {"type": "layers", "diff_ids": [_digest(archive)]},
        }).encode()  # fmt: skip
        self._blobs = {_digest(data): data for data in (layer, config)}
        self._manifest = json.dumps({
            "schemaVersion": 2, "mediaType": MANIFEST_TYPE,
            "config": {"mediaType": CONFIG_TYPE, "size": len(config), "digest": _digest(config)},
            "layers": [{"mediaType": LAYER_TYPE, "size": len(layer), "digest": _digest(layer)}],
        }).encode()  # fmt: skip
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.answer(self)

            def do_HEAD(self) -> None:
                registry.answer(self)

            def log_message(self, *_: Any) -> None:
                """Prints nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self.image = f"{self.host}/library/box:1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answers one request."""
        self.requests.append(request.path)
        kind = "application/octet-stream"
        if request.headers.get("Authorization") != self._expected:
            status, kind, body = 401, "application/json", _error("UNAUTHORIZED", "who are you")
        elif request.path == "/v2/":
            status, body = 200, b"{}"
        elif request.path == "/v2/library/box/manifests/1":
            status, kind, body = 200, MANIFEST_TYPE, self._manifest
        elif (blob := self._blobs.get(request.path.rpartition("/")[2])) is not None:
            status, body = 200, blob
        else:
            status, kind, body = 404, "application/json", _error("MANIFEST_UNKNOWN", "no such tag")
        request.send_response(status)
        if status == 401:
            request.send_header("WWW-Authenticate", 'Basic realm="test"')
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if request.command == "GET":
            request.wfile.write(body)

    def close(self) -> None:
        """Stops it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _error(code: str, message: str) -> bytes:
    return json.dumps({"errors": [{"code": code, "message": message}]}).encode()
