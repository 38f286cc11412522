"""The rules of Windlass as pure functions. No I/O, no clock, no logging, no waiting."""
