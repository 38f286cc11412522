"""The modes of isolation: how the programs of an attempt are started under each.

`confinement.py` is the interface of a mode, `modes.py` lists those that this machine supports.
The keeper ends what an agent leaves, containers included (`keeper/outside.py`).
Attempts ask here before the keeper starts a program; the keeper and the agent core do not import
it.
"""
