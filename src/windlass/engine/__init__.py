"""Every decision that spans several rows: commands, claims, cascades, and the loops.

`engine.Engine` is the way in. Servers, the embedded client, workers on the store and the
simulator import it. It reads and writes through the store's port only, and knows no HTTP.

`commands` are its entry points. `submit`, `sync`, `claim`, `attempts` and `jobs` move jobs, in
transactions of `transaction`. `workflows`, `steps`, `inbox`, `schedules` and `pools` build on them;
`fleet` has the workers, `files` logs and artifacts. `explain`, `graphs`, `history` and `verify` say
what happened. `loops` has the maintenance.
"""
