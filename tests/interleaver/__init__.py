"""A seeded interleaver for PostgreSQL: real transactions, stepped statement by statement.

Races of a database do not occur in the simulator, where transactions run one after
another. Here every pair of commands runs in two real transactions at once; before each
statement, BEGIN and COMMIT included, a transaction waits for its turn, and a schedule
decides whose it is. Afterwards nothing may be lost, doubled, stuck or deadlocked.
"""
