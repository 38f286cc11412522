"""Which tests reach which functions, so that a commit is fuzzed from the tests that matter."""
