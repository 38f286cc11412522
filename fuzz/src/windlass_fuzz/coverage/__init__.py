"""Maps tests to the functions they reach, so that fuzzing starts from the tests that matter.

Sources and roles import it. It must not read buckets or repositories.
"""
