"""Notes, and what is done with them in the background."""
