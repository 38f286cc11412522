"""Seeds from outside the repository: corpora, dictionaries, and inputs from a generator.

Everything here may be hostile. It is read within limits, and never written under its own names.
"""
