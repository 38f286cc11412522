"""The solver's repository: new commits (through git or the GitHub API) and checkouts.

Builds, findings and roles import it. It must not change the state of the pipeline.
"""
