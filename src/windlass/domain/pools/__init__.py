"""How many workers a pool needs: description, sizing as a flow, costs, what-if.

Pure functions over a snapshot. Engine pools read the snapshot and act.
"""
