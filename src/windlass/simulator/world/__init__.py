"""The simulated world: virtual time, the seeded generator, network, stores, and what was noticed.

The actors move in it. It must not know them, and must not read a real clock or draw a number from
anything but the seed.
"""
