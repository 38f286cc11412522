"""Unpacks Chromium from the npm package `@sparticuz/chromium`: nothing is installed by hand."""

import hashlib
import os
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Final

import hatch_build

PACKAGE: Final = hatch_build.MODULES / "@sparticuz" / "chromium"
# Programs decompress Brotli without a package in node, not in Python.
UNPACK: Final = """
const fs = require("node:fs"), zlib = require("node:zlib");
const [from, to] = process.argv.slice(1);
fs.writeFileSync(to, zlib.brotliDecompressSync(fs.readFileSync(from)));
"""
FONTS: Final = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>{fonts}</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>{own}/font-cache</cachedir>
</fontconfig>
"""
# Without a display, a sandbox for root, or a GPU; one process fewer starts faster.
FLAGS: Final = (
    "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--no-first-run",
    "--force-color-profile=srgb", "--font-render-hinting=none",
)  # fmt: skip


def unpacked() -> Path:
    """Returns the program, in a folder that is kept between runs."""
    hatch_build.install()
    version = (PACKAGE / "package.json").read_bytes()
    name = f"windlass-chromium-{hashlib.sha256(version).hexdigest()[:12]}"
    folder = Path(tempfile.gettempdir()) / name
    program = folder / "chromium"
    if not program.exists():
        _unpack(folder)
    return program


def environment(program: Path) -> dict[str, str | float | bool]:
    """Returns the variables with which it finds its own libraries and fonts."""
    own = program.parent
    before = os.environ.get("LD_LIBRARY_PATH", "")
    libraries = f"{own / 'lib'}:{before}".rstrip(":")
    return {**os.environ, "LD_LIBRARY_PATH": libraries, "FONTCONFIG_PATH": str(own)}


def _unpack(folder: Path) -> None:
    """Unpacks next to the folder and renames, so that two at once cannot disturb each other."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        fresh = Path(name)
        program = fresh / "made"
        program.mkdir()
        for source in sorted((PACKAGE / "bin").glob("*.br")):
            target = fresh / source.stem
            command = [str(hatch_build.find_node()), "-e", UNPACK, str(source), str(target)]
            subprocess.run(command, check=True)
            if target.suffix == ".tar":
                with tarfile.open(target) as archive:
                    archive.extractall(program, filter="data")
            else:
                target.rename(program / target.name)
                (program / target.name).chmod(0o755)
        (program / "fonts.conf").write_text(FONTS.format(fonts=folder / "fonts", own=folder))
        try:
            program.rename(folder)
        except OSError:
            pass  # another process was faster
