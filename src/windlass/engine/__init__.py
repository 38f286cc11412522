"""Every decision that spans several rows: commands, claims, cascades, and the loops.

`engine.Engine` is the way in. Servers, the embedded client, workers on the store and the
simulator import it. It reads and writes through the store's port only, and knows no HTTP.
"""
