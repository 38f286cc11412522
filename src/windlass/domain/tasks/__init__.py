"""What the built-in tasks accept, one file a task. Pure: servers ask at submit."""
