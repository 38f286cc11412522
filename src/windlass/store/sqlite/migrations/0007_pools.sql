-- Pools, and what they do at the moment.
CREATE TABLE pools (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    state INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    next_at INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    message TEXT,
    learned TEXT,
    body BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE pool_workers (
    id INTEGER PRIMARY KEY,
    pool INTEGER NOT NULL,
    state INTEGER NOT NULL,
    worker INTEGER NOT NULL,
    last_lease INTEGER NOT NULL,
    requested_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    idle_since INTEGER NOT NULL,
    charged_until INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    spot INTEGER NOT NULL,
    token TEXT NOT NULL UNIQUE,
    machine TEXT,
    reason TEXT
) STRICT;

CREATE INDEX pool_workers_living ON pool_workers (id) WHERE state < 6;

CREATE INDEX pool_workers_gone ON pool_workers (changed_at, id) WHERE state = 6;

CREATE TABLE pool_costs (
    pool TEXT NOT NULL,
    month INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    queue TEXT NOT NULL,
    ms INTEGER NOT NULL,
    micros INTEGER NOT NULL,
    PRIMARY KEY (month, pool, namespace, queue)
) STRICT, WITHOUT ROWID;

-- Workers of pools come and go, and with them their tokens and codes.
CREATE INDEX tokens_worker ON tokens (worker) WHERE worker > 0;
CREATE INDEX codes_expired ON codes (expires_at, digest);
