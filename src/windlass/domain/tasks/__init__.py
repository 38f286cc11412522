"""What the built-in tasks accept, one file per task. Pure: servers check it at submit."""
