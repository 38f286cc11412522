"""The mode `container`: programs of jobs run in containers of podman, docker or nerdctl.

`engine.py` finds the engine, `image.py` fetches images, `arguments.py` says how a container is
started, `mode.py` puts them together. The keeper ends what an agent leaves (`keeper/outside.py`).
"""
