"""Makes the builds of a commit, packs them for the bucket, and fetches them again.

Findings and roles import it. It must not decide which commit is built.
"""
