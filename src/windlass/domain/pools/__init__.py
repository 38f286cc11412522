"""How many workers a pool needs: description, sizing as a flow, costs, what-if.

Pure functions over a snapshot. `engine/pools` reads the snapshot and acts.
"""
