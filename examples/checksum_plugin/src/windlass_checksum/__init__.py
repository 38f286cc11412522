"""Checksums of files, computed by workers: an example of a plug-in.

Every command of `windlass` may import this module, so it imports nothing but the declaration.
"""

from windlass.plugins import Plugin, PluginCommand, PluginPage

PLUGIN = Plugin(
    api=1,
    name="checksum",
    about="Computes checksums of files on workers.",
    commands={
        "checksum": PluginCommand(
            "windlass_checksum.command:checksum", "Print checksums of files, computed by workers."
        )
    },
    tasks={"checksum.file": "windlass_checksum.tasks:checksum"},
    page=PluginPage("Checksums", needs="read-jobs", folder="windlass_checksum:page"),
)
