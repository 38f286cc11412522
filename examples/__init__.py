"""Programs that show Windlass at work."""
