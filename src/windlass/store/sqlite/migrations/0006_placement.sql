-- Placement: limits of queues, rates of keys, reservations, shares of namespaces.

ALTER TABLE queues ADD COLUMN max_running INTEGER NOT NULL DEFAULT 0;

ALTER TABLE queues ADD COLUMN max_per_worker INTEGER NOT NULL DEFAULT 0;

ALTER TABLE queues ADD COLUMN preempts INTEGER NOT NULL DEFAULT 0;

-- The row of `limits` that counts what runs of a queue.
ALTER TABLE queues ADD COLUMN limit_id INTEGER NOT NULL DEFAULT 0;

-- The limit of its queue that a lease counts under, 0 if there is none.
ALTER TABLE leases ADD COLUMN queue_limit INTEGER NOT NULL DEFAULT 0;

-- Leases whose worker is told to stop, also those that are running: they are preempted.
DROP INDEX leases_stopped;

CREATE INDEX leases_stopped ON leases (worker) WHERE reason IS NOT NULL;

-- The newest starts of jobs under a rate, as JSON, oldest first.
CREATE TABLE rates (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    keep INTEGER NOT NULL,
    starts TEXT NOT NULL,
    PRIMARY KEY (namespace, key)
) STRICT, WITHOUT ROWID;

-- Workers kept free for a large job: one worker a job, one job a worker.
CREATE TABLE reservations (
    worker INTEGER PRIMARY KEY,
    job INTEGER NOT NULL UNIQUE,
    shape INTEGER NOT NULL,
    since INTEGER NOT NULL
) STRICT;

CREATE TABLE namespace_weights (
    namespace TEXT PRIMARY KEY,
    weight INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What completed attempts took, per shape and measure; buckets is a JSON object.
CREATE TABLE statistics (
    shape INTEGER NOT NULL,
    measure INTEGER NOT NULL,
    values_seen INTEGER NOT NULL,
    total INTEGER NOT NULL,
    low INTEGER NOT NULL,
    high INTEGER NOT NULL,
    buckets TEXT NOT NULL,
    PRIMARY KEY (shape, measure)
) STRICT, WITHOUT ROWID;

-- What a job's newest attempt took of its machine, where that is known.
CREATE TABLE usage (
    job INTEGER PRIMARY KEY,
    attempt INTEGER NOT NULL,
    peak_memory INTEGER NOT NULL
) STRICT;

-- Jobs that have to start or to end before a time.
CREATE TABLE deadlines (
    at INTEGER NOT NULL,
    job INTEGER NOT NULL,
    PRIMARY KEY (at, job)
) STRICT, WITHOUT ROWID;

-- What workers reported until then: a job is not refused for what is only missing today.
CREATE TABLE past_metadata (
    worker INTEGER NOT NULL,
    digest TEXT NOT NULL,
    until INTEGER NOT NULL,
    dynamic TEXT NOT NULL,
    PRIMARY KEY (worker, digest)
) STRICT, WITHOUT ROWID;
