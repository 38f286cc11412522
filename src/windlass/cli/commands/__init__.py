"""The commands, one module per command group, in the sections of `windlass --help`.

`windlass.cli.app` loads a module when its command is called. Modules here may import `options` and
`output`; those two must not import this package.
"""
