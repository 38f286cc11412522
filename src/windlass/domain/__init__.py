"""The rules of Windlass as pure functions over values and `now`.

Everything may import it. It imports nothing else of Windlass, and does no I/O, reads no clock,
writes no log and never waits.

`job` describes and validates jobs, `lifecycle` has states, retries and ranks, `matching` says which
worker may run which job, `access` who may do what, `rows` what stores keep. `graphs`, `explain` and
`pools` compute on top of them; `values` is below all. `config` declares every option.
"""
