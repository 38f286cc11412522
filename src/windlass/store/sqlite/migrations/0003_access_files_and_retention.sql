-- Who may do what. Only digests of secrets are kept.
CREATE TABLE tokens (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    namespaces TEXT NOT NULL,
    worker INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER NOT NULL
) STRICT;

CREATE TABLE codes (
    digest TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What is known of files; their bytes are blobs.
CREATE TABLE logs (
    job INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    state INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    gap_from INTEGER NOT NULL,
    gap_to INTEGER NOT NULL,
    PRIMARY KEY (job, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE artifacts (
    job INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    PRIMARY KEY (job, attempt, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE names (
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    job INTEGER NOT NULL,
    artifact TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    set_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE progress (
    job INTEGER PRIMARY KEY,
    attempt INTEGER NOT NULL,
    value BLOB NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE TABLE dynamic (
    job INTEGER PRIMARY KEY,
    attempt INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

-- Where a replay begins once the oldest events are gone.
CREATE TABLE baseline (
    kind INTEGER NOT NULL,
    id INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;

-- Logs that have not ended.
CREATE INDEX logs_streaming ON logs (job, attempt) WHERE state = 1;

CREATE INDEX artifacts_sha256 ON artifacts (sha256);

CREATE INDEX names_sha256 ON names (sha256);

-- Jobs that ended otherwise than completed, of which there are few.
CREATE INDEX outcomes_bad ON outcomes (job, state) WHERE state > 8;

CREATE INDEX jobs_workflow ON jobs (workflow) WHERE workflow > 0;

-- Jobs that back off; planned ones may be many.
CREATE INDEX due_retrying ON due (job, shape) WHERE state = 7;

CREATE INDEX keys_job ON keys (job);
