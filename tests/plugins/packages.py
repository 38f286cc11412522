"""Packages with plug-ins, as an installer would leave them in a folder of the search path."""

from pathlib import Path


def add_package(folder: Path, name: str, code: str, *, points: str | None = None) -> Path:
    """Writes a package whose module `name` has a PLUGIN, and returns the folder."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    points = f"{name} = {name}:PLUGIN" if points is None else points
    (about / "entry_points.txt").write_text(f"[windlass.plugins]\n{points}\n")
    (folder / f"{name}.py").write_text(code)
    return folder


def declaration(name: str, more: str = "", api: int = 1) -> str:
    """Returns the source of a module that declares a plug-in."""
    return (
        "from windlass.plugins import Plugin, PluginCommand, PluginPage\n"
        f"PLUGIN = Plugin(api={api}, name={name!r}, about='For a test.', {more})\n"
    )
