"""What happens to single jobs: entering and leaving places, ending, canceling, superseding.

Imports the transaction package only. Submitting, claiming and syncing build on it.
"""
