"""The sections of the core benchmark, each with `run(options) -> list[Row]`."""
