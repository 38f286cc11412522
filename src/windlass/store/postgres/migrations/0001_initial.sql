-- Everything but the clock. Names are unqualified: connections search the schema `windlass`.
-- Columns of one width stand together, so that rows have no padding. NULL stands for the
-- records' 0 where most rows have none: it takes no room.

CREATE SEQUENCE job_ids;
CREATE SEQUENCE workflow_ids;
CREATE SEQUENCE lease_numbers;
CREATE SEQUENCE event_numbers CACHE 1;
CREATE SEQUENCE worker_ids;
CREATE SEQUENCE shape_ids;
CREATE SEQUENCE limit_ids;
CREATE SEQUENCE cascade_ids;

-- Written when a job is submitted and when an attempt closes. Half of each page stays free
-- and no column that an end writes has an index, so that the second write is a HOT update.
CREATE TABLE jobs (
    id bigint PRIMARY KEY,
    workflow bigint,
    rank bigint NOT NULL,
    age_from bigint NOT NULL,
    created_at bigint NOT NULL,
    limit_id bigint,
    timeout_ms bigint,
    idle_ms bigint,
    supersedes bigint,
    superseded_by bigint,
    shape integer NOT NULL,
    base integer NOT NULL,
    adjustment integer NOT NULL,
    flags integer NOT NULL,
    attempt integer NOT NULL DEFAULT 0,
    failed smallint NOT NULL DEFAULT 0,
    lost smallint NOT NULL DEFAULT 0,
    returned smallint NOT NULL DEFAULT 0,
    state smallint NOT NULL DEFAULT 0,
    spec bytea NOT NULL,
    excluded text,
    assigned_at bigint,
    started_at bigint,
    finished_at bigint,
    worker bigint,
    incarnation bigint,
    exit_code integer,
    failure smallint,
    message text,
    reason text,
    result bytea
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX jobs_superseded_by ON jobs (superseded_by) WHERE superseded_by IS NOT NULL;

CREATE TABLE attempts (
    job bigint NOT NULL,
    worker bigint NOT NULL,
    incarnation bigint NOT NULL,
    assigned_at bigint NOT NULL,
    started_at bigint NOT NULL,
    finished_at bigint NOT NULL,
    number integer NOT NULL,
    exit_code integer,
    state smallint NOT NULL,
    failure smallint NOT NULL,
    message text,
    PRIMARY KEY (job, number)
);

-- Long lists are stored beside the row as they are: they hardly compress.
CREATE TABLE dependents (
    job bigint NOT NULL,
    chunk integer NOT NULL,
    edges bigint[] STORAGE EXTERNAL NOT NULL,
    PRIMARY KEY (job, chunk)
);

CREATE TABLE keys (
    namespace text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    job bigint NOT NULL,
    digest text NOT NULL,
    PRIMARY KEY (namespace, key)
);

CREATE TABLE waits (
    job bigint PRIMARY KEY,
    not_before bigint NOT NULL,
    age_from bigint NOT NULL,
    rank bigint NOT NULL,
    workflow bigint,
    limit_id bigint,
    unmet integer NOT NULL,
    shape integer NOT NULL,
    attempt integer NOT NULL,
    manual smallint NOT NULL,
    excluded text
) WITH (fillfactor = 70);

CREATE TABLE due (
    job bigint PRIMARY KEY,
    at bigint NOT NULL,
    rank bigint NOT NULL,
    workflow bigint,
    limit_id bigint,
    shape integer NOT NULL,
    attempt integer NOT NULL,
    state smallint NOT NULL,
    excluded text
);
CREATE INDEX due_at ON due (at, job);

CREATE TABLE parked (
    limit_id bigint NOT NULL,
    rank bigint NOT NULL,
    job bigint NOT NULL,
    workflow bigint,
    shape integer NOT NULL,
    attempt integer NOT NULL,
    excluded text,
    PRIMARY KEY (limit_id, shape, rank, job)
);

-- Rows come and go by the thousand while the table stays small: vacuum early and fast.
CREATE TABLE ready (
    rank bigint NOT NULL,
    job bigint NOT NULL,
    workflow bigint,
    limit_id bigint,
    shape integer NOT NULL,
    attempt integer NOT NULL,
    excluded text,
    PRIMARY KEY (shape, rank, job)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 10000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ready_limit ON ready (limit_id, shape) WHERE limit_id IS NOT NULL;

CREATE TABLE leases (
    job bigint PRIMARY KEY,
    lease bigint NOT NULL,
    worker bigint NOT NULL,
    incarnation bigint NOT NULL,
    assigned_at bigint NOT NULL,
    started_at bigint NOT NULL,
    activity_at bigint NOT NULL,
    deadline_at bigint NOT NULL,
    timeout_ms bigint,
    idle_ms bigint,
    limit_id bigint,
    attempt integer NOT NULL,
    state smallint NOT NULL,
    reason text
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 10000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX leases_worker ON leases (worker);
CREATE INDEX leases_stopped ON leases (worker) WHERE state IN (5, 6);

CREATE TABLE workers (
    id bigint PRIMARY KEY,
    incarnation bigint NOT NULL,
    seq bigint NOT NULL,
    last_seen bigint NOT NULL,
    last_lease bigint NOT NULL,
    enrolled_at bigint NOT NULL,
    slots integer NOT NULL,
    status smallint NOT NULL,
    name text COLLATE "C" NOT NULL UNIQUE,
    static text NOT NULL,
    dynamic text NOT NULL,
    troubles text,
    reason text
) WITH (fillfactor = 50);

CREATE TABLE workflows (
    id bigint PRIMARY KEY,
    created_at bigint NOT NULL,
    finished_at bigint NOT NULL,
    run integer NOT NULL,
    flags integer NOT NULL,
    state smallint NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    counts integer[] NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE cascades (
    id bigint PRIMARY KEY DEFAULT nextval('cascade_ids'),
    job bigint NOT NULL,
    cursor integer NOT NULL,
    kind smallint NOT NULL,
    reason text
);
CREATE INDEX cascades_job ON cascades (job);

CREATE TABLE limits (
    id bigint PRIMARY KEY,
    max bigint NOT NULL,
    leased bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    UNIQUE (namespace, key)
) WITH (fillfactor = 50);

CREATE TABLE shapes (
    id integer PRIMARY KEY,
    digest text COLLATE "C" NOT NULL UNIQUE,
    body bytea NOT NULL
);

CREATE TABLE queues (
    name text COLLATE "C" PRIMARY KEY,
    weight integer NOT NULL,
    paused smallint NOT NULL
);

CREATE TABLE meta (
    name text COLLATE "C" PRIMARY KEY,
    value bigint NOT NULL
) WITH (fillfactor = 50);

-- A shard for each connection of each server: two transactions never meet in one row.
CREATE TABLE counters (
    server text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    value bigint NOT NULL,
    slot smallint NOT NULL,
    PRIMARY KEY (server, slot, name)
) WITH (fillfactor = 50);

-- Kind 1 is a transition of a job: "from" × 16 + "to" must be a pair of domain/lifecycle/states.py.
CREATE TABLE events (
    seq bigint PRIMARY KEY DEFAULT nextval('event_numbers'),
    at bigint NOT NULL,
    job bigint NOT NULL,
    worker bigint,
    incarnation bigint,
    attempt integer NOT NULL,
    kind smallint NOT NULL,
    "from" smallint NOT NULL,
    "to" smallint NOT NULL,
    reason text,
    actor text,
    data text,
    CONSTRAINT events_transition CHECK (
        kind <> 1 OR "from" * 16 + "to" = ANY (ARRAY[
            1, 2, 12, 18, 26, 27, 33, 35, 42, 44, 50, 52, 54, 55, 57, 58, 69, 70, 71, 72,
            73, 88, 89, 90, 101, 103, 105, 113, 114, 121, 122
        ])
    )
);
CREATE INDEX events_job ON events (job);
