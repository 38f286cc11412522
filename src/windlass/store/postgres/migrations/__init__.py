"""Numbered changes of the schema. A file that was released never changes again."""
