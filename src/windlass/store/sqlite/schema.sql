-- Version 1 of the schema: what a new file gets. Later versions are in migrations/.
--
-- Times are milliseconds. Names in braces are codes of domain/ (see store/sql/queries.py).

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
    paused INTEGER NOT NULL,
    max_running INTEGER NOT NULL DEFAULT 0,
    max_per_worker INTEGER NOT NULL DEFAULT 0,
    preempts INTEGER NOT NULL DEFAULT 0,
    -- The row of `limits` that counts what runs of a queue.
    limit_id INTEGER,
    isolation TEXT,
    timeout_ms INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    shape INTEGER NOT NULL,
    workflow INTEGER,
    flags INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    base INTEGER NOT NULL,
    adjustment INTEGER NOT NULL,
    age_from INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    limit_id INTEGER,
    timeout_ms INTEGER,
    idle_ms INTEGER,
    supersedes INTEGER,
    superseded_by INTEGER,
    attempt INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    lost INTEGER NOT NULL DEFAULT 0,
    returned INTEGER NOT NULL DEFAULT 0,
    handed_back INTEGER NOT NULL DEFAULT 0,
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
    worker INTEGER,
    incarnation INTEGER,
    assigned_at INTEGER,
    started_at INTEGER,
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
    started_at INTEGER,
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
    -- Of a submission: the ids of its jobs as JSON, [[first, last], ...].
    spans TEXT,
    PRIMARY KEY (namespace, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE waits (
    job INTEGER PRIMARY KEY,
    unmet INTEGER NOT NULL,
    manual INTEGER NOT NULL,
    not_before INTEGER,
    age_from INTEGER NOT NULL,
    shape INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    workflow INTEGER,
    limit_id INTEGER,
    excluded TEXT
) STRICT;

CREATE TABLE due (
    at INTEGER NOT NULL,
    job INTEGER NOT NULL,
    state INTEGER NOT NULL,
    shape INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    workflow INTEGER,
    limit_id INTEGER,
    excluded TEXT,
    PRIMARY KEY (at, job)
) STRICT, WITHOUT ROWID;

CREATE TABLE parked (
    shape INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    job INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    workflow INTEGER,
    limit_id INTEGER NOT NULL,
    excluded TEXT,
    PRIMARY KEY (limit_id, shape, rank, job)
) STRICT, WITHOUT ROWID;

CREATE TABLE ready (
    shape INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    job INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    workflow INTEGER,
    limit_id INTEGER,
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
    started_at INTEGER,
    activity_at INTEGER,
    deadline_at INTEGER,
    timeout_ms INTEGER,
    idle_ms INTEGER,
    limit_id INTEGER,
    reason TEXT,
    -- The limit of its queue that a lease counts under.
    queue_limit INTEGER,
    -- Above 0 if the job lost a worker on which other jobs ran too: how many such may be together.
    suspicion INTEGER NOT NULL DEFAULT 0,
    -- JSON {resource: [index, …]}: what it holds of its worker's indexed resources.
    indices TEXT
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
    finished_at INTEGER,
    counts TEXT NOT NULL
) STRICT;

CREATE TABLE cascades (
    id INTEGER PRIMARY KEY,
    job INTEGER,
    workflow INTEGER,
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

-- Who did what, from where; repeated calls share a row and are counted.
CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    status INTEGER NOT NULL,
    token INTEGER NOT NULL,
    actor TEXT NOT NULL,
    role TEXT NOT NULL,
    address TEXT NOT NULL,
    action TEXT NOT NULL,
    resource TEXT NOT NULL,
    namespace TEXT NOT NULL,
    code TEXT NOT NULL,
    request TEXT NOT NULL,
    about TEXT NOT NULL
) STRICT;
CREATE INDEX audit_at ON audit (at);

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
    revoked_at INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    parent INTEGER NOT NULL
) STRICT;

CREATE TABLE codes (
    digest TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    takeover INTEGER NOT NULL,
    worker TEXT NOT NULL,
    token INTEGER NOT NULL
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

CREATE TABLE uploads (
    namespace TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    created_by TEXT NOT NULL,
    used_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, sha256)
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

-- What functions have done so far, and what they wait for.
CREATE TABLE steps (
    job INTEGER NOT NULL,
    key TEXT NOT NULL,
    kind INTEGER NOT NULL,
    state INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    asked_at INTEGER NOT NULL,
    until INTEGER,
    ended_at INTEGER,
    namespace TEXT NOT NULL,
    name TEXT,
    signal INTEGER,
    actor TEXT,
    body BLOB,
    value BLOB,
    PRIMARY KEY (job, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX steps_waiting ON steps (namespace, name, job)
WHERE kind = {step.signal} AND state = {step_state.pending};

CREATE INDEX steps_asked ON steps (job) WHERE kind = {step.question} AND state = {step_state.pending};

CREATE INDEX steps_joining ON steps (job, key) WHERE kind = {step.jobs} AND state = {step_state.pending};

CREATE TABLE signals (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    at INTEGER NOT NULL,
    is_open INTEGER NOT NULL,
    actor TEXT,
    payload BLOB NOT NULL,
    UNIQUE (namespace, name, key)
) STRICT;

CREATE INDEX signals_name ON signals (namespace, name, id);

CREATE INDEX signals_at ON signals (at);

-- Those that waiting jobs may not have been told of.
CREATE INDEX signals_open ON signals (id) WHERE is_open = 1;

-- Where a replay begins once the oldest events are gone.
CREATE TABLE baseline (
    kind INTEGER NOT NULL,
    id INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kind, id)
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
    data TEXT,
    -- For each state, a bit for every state it may become: TRANSITION_CODES as masks.
    CONSTRAINT valid_transition CHECK (
        kind <> {event.job} OR (
            CASE from_state
                WHEN {state.new} THEN {transitions.from_new}
                WHEN {state.queued} THEN {transitions.from_queued}
                WHEN {state.assigned} THEN {transitions.from_assigned}
                WHEN {state.running} THEN {transitions.from_running}
                WHEN {state.blocked} THEN {transitions.from_blocked}
                WHEN {state.canceling} THEN {transitions.from_canceling}
                WHEN {state.timed_out} THEN {transitions.from_timed_out}
                WHEN {state.retrying} THEN {transitions.from_retrying}
                WHEN {state.suspended} THEN {transitions.from_suspended}
                ELSE 0
            END >> to_state
        ) & 1
    )
) STRICT;

-- All but the four transitions of every job that goes well; roles.py finds those.
CREATE INDEX events_rare ON events (job)
WHERE
    CASE from_state
        WHEN {state.new} THEN to_state <> {state.queued}
        WHEN {state.queued} THEN to_state <> {state.assigned}
        WHEN {state.assigned} THEN to_state <> {state.running}
        WHEN {state.running} THEN to_state <> {state.completed}
        ELSE 1
    END;

CREATE INDEX leases_worker ON leases (worker);

-- Told to stop (canceling, timed_out, preempted), or held by a suspect.
CREATE INDEX leases_marked ON leases (worker) WHERE reason IS NOT NULL OR suspicion > 0;

CREATE INDEX ready_limit ON ready (limit_id, shape) WHERE limit_id IS NOT NULL;

CREATE UNIQUE INDEX due_job ON due (job);

CREATE INDEX cascades_job ON cascades (job) WHERE job IS NOT NULL;

CREATE INDEX cascades_workflow ON cascades (workflow) WHERE workflow IS NOT NULL;

-- Logs that have not ended.
CREATE INDEX logs_streaming ON logs (job, attempt) WHERE state = {log.streaming};

-- Logs that nobody will complete, of which there are few.
CREATE INDEX logs_lost ON logs (job, attempt) WHERE state = {log.lost};

CREATE INDEX artifacts_sha256 ON artifacts (sha256);

CREATE INDEX names_sha256 ON names (sha256);

CREATE INDEX uploads_sha256 ON uploads (sha256);

CREATE INDEX uploads_used_at ON uploads (used_at);

-- Jobs that ended without completing, of which there are few.
CREATE INDEX outcomes_bad ON outcomes (job, state) WHERE state > {state.completed};

CREATE INDEX jobs_workflow ON jobs (workflow) WHERE workflow IS NOT NULL;

-- Jobs that back off or are suspended; planned ones may be many.
CREATE INDEX due_unplanned ON due (job, shape, state) WHERE state <> {state.queued};

CREATE INDEX keys_job ON keys (job);

-- What workflows were submitted with, apart from the rows that every job's end rewrites.
CREATE TABLE workflow_about (
    workflow INTEGER PRIMARY KEY,
    base INTEGER NOT NULL,
    key TEXT,
    reason TEXT,
    body BLOB NOT NULL
) STRICT;

CREATE TABLE workflow_keys (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    workflow INTEGER NOT NULL,
    PRIMARY KEY (namespace, key)
) STRICT, WITHOUT ROWID;

-- Workflows that have not ended.
CREATE INDEX workflows_unfinished ON workflows (id) WHERE state < {workflow.completed};

CREATE INDEX workflow_keys_workflow ON workflow_keys (workflow);

-- Templates, each version a row that never changes.
CREATE TABLE templates (
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    body BLOB NOT NULL,
    digest TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT,
    removed_at INTEGER,
    PRIMARY KEY (namespace, name, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE schedules (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    cron TEXT,
    every_ms INTEGER,
    zone TEXT NOT NULL,
    overlap TEXT NOT NULL,
    catch_up TEXT NOT NULL,
    catch_up_limit INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    next_at INTEGER,
    last_slot INTEGER NOT NULL,
    body BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT,
    updated_at INTEGER NOT NULL,
    CHECK ((cron IS NULL) <> (every_ms IS NULL)),
    UNIQUE (namespace, name)
) STRICT;

CREATE INDEX schedules_due ON schedules (next_at) WHERE paused = 0 AND next_at IS NOT NULL;

CREATE TABLE schedule_runs (
    id INTEGER PRIMARY KEY,
    schedule INTEGER NOT NULL,
    slot INTEGER,
    state INTEGER NOT NULL,
    workflow INTEGER,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    reason TEXT,
    actor TEXT
) STRICT;

-- At most one run for each slot; those started by hand have none.
CREATE UNIQUE INDEX schedule_runs_slot ON schedule_runs (schedule, slot) WHERE slot IS NOT NULL;

CREATE INDEX schedule_runs_schedule ON schedule_runs (schedule, id);

CREATE INDEX schedule_runs_waiting ON schedule_runs (schedule) WHERE state = {run.waiting};

CREATE INDEX schedule_runs_open ON schedule_runs (schedule, state, id) WHERE state < {run.ended};

CREATE INDEX schedule_runs_ended ON schedule_runs (changed_at) WHERE state >= {run.ended};

CREATE TABLE reactions (
    id INTEGER PRIMARY KEY,
    workflow INTEGER NOT NULL,
    run INTEGER NOT NULL,
    occasion INTEGER NOT NULL,
    place INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    state INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    next_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    finished_at INTEGER,
    outcome INTEGER NOT NULL,
    result INTEGER,
    message TEXT,
    UNIQUE (workflow, run, occasion, place)
) STRICT;

CREATE INDEX reactions_due ON reactions (next_at, id) WHERE state = {reaction.pending};

CREATE INDEX reactions_ended ON reactions (finished_at) WHERE state > {reaction.pending};

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
    namespace TEXT NOT NULL,
    queue TEXT NOT NULL,
    kind TEXT NOT NULL,
    measure INTEGER NOT NULL,
    values_seen INTEGER NOT NULL,
    weight REAL NOT NULL,
    total REAL NOT NULL,
    low INTEGER NOT NULL,
    high INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    buckets TEXT NOT NULL,
    PRIMARY KEY (namespace, queue, kind, measure)
) STRICT, WITHOUT ROWID;

-- Figures over time, added up from the events; `body` is JSON (see domain/rows/series.py).
CREATE TABLE series (
    kind INTEGER NOT NULL,
    step INTEGER NOT NULL,
    at INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kind, step, at, namespace, name)
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

-- The names of removed workers, for the history of their jobs.
CREATE TABLE past_workers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL
) STRICT;

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
    worker INTEGER,
    last_lease INTEGER NOT NULL,
    requested_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    idle_since INTEGER,
    charged_until INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    spot INTEGER NOT NULL,
    token TEXT NOT NULL UNIQUE,
    machine TEXT,
    reason TEXT
) STRICT;

CREATE INDEX pool_workers_living ON pool_workers (id) WHERE state < {pool_worker.gone};

CREATE INDEX pool_workers_gone ON pool_workers (changed_at, id) WHERE state = {pool_worker.gone};

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
CREATE INDEX tokens_session ON tokens (expires_at) WHERE kind = 'session';
CREATE INDEX codes_expired ON codes (expires_at, digest);

-- Numbers of events go on from the newest one, so that one must stay.
CREATE TRIGGER events_keep_the_newest BEFORE DELETE ON events
WHEN OLD.seq = (SELECT max(seq) FROM events)
BEGIN
    SELECT RAISE(ABORT, 'the newest event must stay: the numbering goes on from it');
END;


-- What users submitted in transactions of their own; the holder of the file turns it into jobs. The
-- ids in `jobs` (JSON) are taken from `sequences` already. `namespaces` is JSON too.
CREATE TABLE inbox (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    jobs TEXT NOT NULL,
    submitted_by TEXT NOT NULL,
    namespaces TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;

-- Jobs from `inbox` whose key another job had: that one stands for them.
CREATE TABLE job_aliases (
    job INTEGER PRIMARY KEY,
    became INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX job_aliases_at ON job_aliases (at, job);

-- Where ids have jumped (see domain/rows/gaps.py).
CREATE TABLE gaps (
    first INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    last_job INTEGER NOT NULL,
    last_workflow INTEGER NOT NULL,
    last_event INTEGER NOT NULL,
    timeline_before INTEGER NOT NULL,
    timeline INTEGER NOT NULL,
    lost INTEGER NOT NULL
) STRICT;
