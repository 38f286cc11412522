"""The terminals as rich sees them; importing this loads rich."""

from typing import Final

from rich.console import Console

console: Final = Console()
errors: Final = Console(stderr=True)
