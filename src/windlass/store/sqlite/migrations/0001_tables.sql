-- The tables. Columns that are bound together stand in the order of the records of
-- domain/rows/records.py. What ends with a job stands in `outcomes`, which is only appended
-- to: rows of `jobs` that grow would split their pages.

CREATE TABLE sequences (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE shapes (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    body BLOB NOT NULL
) STRICT;

CREATE TABLE queues (
    name TEXT PRIMARY KEY,
    weight INTEGER NOT NULL,
    paused INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    shape INTEGER NOT NULL,
    workflow INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    base INTEGER NOT NULL,
    adjustment INTEGER NOT NULL,
    age_from INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    limit_id INTEGER NOT NULL,
    timeout_ms INTEGER NOT NULL,
    idle_ms INTEGER NOT NULL,
    supersedes INTEGER NOT NULL,
    superseded_by INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    lost INTEGER NOT NULL DEFAULT 0,
    returned INTEGER NOT NULL DEFAULT 0,
    excluded TEXT,
    spec BLOB NOT NULL
) STRICT;

CREATE TABLE outcomes (
    job INTEGER PRIMARY KEY,
    state INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    worker INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,
    assigned_at INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    failure INTEGER NOT NULL,
    exit_code INTEGER,
    message TEXT,
    reason TEXT,
    result BLOB
) STRICT;

CREATE TABLE attempts (
    job INTEGER NOT NULL,
    number INTEGER NOT NULL,
    worker INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,
    state INTEGER NOT NULL,
    failure INTEGER NOT NULL,
    exit_code INTEGER,
    message TEXT,
    assigned_at INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE dependents (
    job INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    edges BLOB NOT NULL,
    PRIMARY KEY (job, chunk)
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    job INTEGER NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (namespace, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE waits (
    job INTEGER PRIMARY KEY,
    unmet INTEGER NOT NULL,
    manual INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    age_from INTEGER NOT NULL,
    shape INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    workflow INTEGER NOT NULL,
    limit_id INTEGER NOT NULL,
    excluded TEXT
) STRICT;

CREATE TABLE due (
    at INTEGER NOT NULL,
    job INTEGER NOT NULL,
    state INTEGER NOT NULL,
    shape INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    workflow INTEGER NOT NULL,
    limit_id INTEGER NOT NULL,
    excluded TEXT,
    PRIMARY KEY (at, job)
) STRICT, WITHOUT ROWID;

CREATE TABLE parked (
    shape INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    job INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    workflow INTEGER NOT NULL,
    limit_id INTEGER NOT NULL,
    excluded TEXT,
    PRIMARY KEY (limit_id, shape, rank, job)
) STRICT, WITHOUT ROWID;

CREATE TABLE ready (
    shape INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    job INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    workflow INTEGER NOT NULL,
    limit_id INTEGER NOT NULL,
    excluded TEXT,
    PRIMARY KEY (shape, rank, job)
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
    job INTEGER PRIMARY KEY,
    attempt INTEGER NOT NULL,
    lease INTEGER NOT NULL,
    worker INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,
    state INTEGER NOT NULL,
    assigned_at INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    activity_at INTEGER NOT NULL,
    deadline_at INTEGER NOT NULL,
    timeout_ms INTEGER NOT NULL,
    idle_ms INTEGER NOT NULL,
    limit_id INTEGER NOT NULL,
    reason TEXT
) STRICT;

CREATE TABLE workers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    incarnation INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    status INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    last_lease INTEGER NOT NULL,
    slots INTEGER NOT NULL,
    static TEXT NOT NULL,
    dynamic TEXT NOT NULL,
    troubles TEXT,
    reason TEXT,
    enrolled_at INTEGER NOT NULL
) STRICT;

CREATE TABLE workflows (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    state INTEGER NOT NULL,
    run INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    counts TEXT NOT NULL
) STRICT;

CREATE TABLE cascades (
    id INTEGER PRIMARY KEY,
    job INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    cursor INTEGER NOT NULL,
    reason TEXT
) STRICT;

CREATE TABLE limits (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    max INTEGER NOT NULL,
    leased INTEGER NOT NULL,
    UNIQUE (namespace, key)
) STRICT;

CREATE TABLE counters (
    server TEXT NOT NULL,
    name TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (server, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    job INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    worker INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,
    from_state INTEGER NOT NULL,
    to_state INTEGER NOT NULL,
    reason TEXT,
    actor TEXT,
    data TEXT
) STRICT;
