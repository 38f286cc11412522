-- Version 1 of the schema: what a new database gets. Functions are in functions/, later versions
-- in migrations/. Names in braces are codes of domain/ (see store/sql/queries.py).

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
CREATE SEQUENCE token_ids;
CREATE SEQUENCE audit_ids;
CREATE SEQUENCE schedule_ids;
CREATE SEQUENCE pool_ids;
CREATE SEQUENCE pool_worker_ids;
CREATE SEQUENCE run_ids;
CREATE SEQUENCE reaction_ids;
CREATE SEQUENCE signal_ids;
CREATE SEQUENCE inbox_ids;

-- Written when a job is submitted and when an attempt closes. Half of each page stays free
-- and no column that an end writes has an index, so that the second write is a HOT update.
-- What an end changes comes last: its log leaves out what both versions of a row begin with.
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
    spec bytea NOT NULL,
    attempt integer NOT NULL DEFAULT 0,
    failed smallint NOT NULL DEFAULT 0,
    lost smallint NOT NULL DEFAULT 0,
    returned smallint NOT NULL DEFAULT 0,
    handed_back smallint NOT NULL DEFAULT 0,
    state smallint, -- once it has ended
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
    started_at bigint,
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
    edges bigint[] NOT NULL,
    PRIMARY KEY (job, chunk)
);
ALTER TABLE dependents ALTER COLUMN edges SET STORAGE EXTERNAL; -- before 16, not in CREATE TABLE

CREATE TABLE keys (
    namespace text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    job bigint NOT NULL,
    digest text NOT NULL,
    spans text, -- of a submission: the ids of its jobs as JSON, [[first, last], ...]
    PRIMARY KEY (namespace, key)
);

CREATE TABLE waits (
    job bigint PRIMARY KEY,
    not_before bigint,
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
    started_at bigint,
    activity_at bigint,
    deadline_at bigint,
    timeout_ms bigint,
    idle_ms bigint,
    limit_id bigint,
    attempt integer NOT NULL,
    state smallint NOT NULL,
    reason text,
    queue_limit bigint, -- the limit of its queue that it counts under
    suspicion smallint, -- the most suspects that may share its worker; 1: it is alone there
    indices text -- JSON {resource: [index, …]}: what it holds of its worker's indexed resources
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 10000,
        autovacuum_vacuum_cost_delay = 0);
-- Numbers rise, so what a worker was given after another lease is found without passing dead entries.
CREATE INDEX leases_worker ON leases (worker, lease);
CREATE INDEX leases_stopped ON leases (worker)
    WHERE state IN ({state.canceling}, {state.timed_out}) OR suspicion IS NOT NULL;
-- Also those that are running and told to stop: they are preempted.
CREATE INDEX leases_told ON leases (worker) WHERE reason IS NOT NULL OR suspicion IS NOT NULL;

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
    finished_at bigint,
    run integer NOT NULL,
    flags integer NOT NULL,
    state smallint NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    counts integer[] NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE cascades (
    id bigint PRIMARY KEY DEFAULT nextval('cascade_ids'),
    job bigint,
    workflow bigint,
    cursor bigint NOT NULL,
    kind smallint NOT NULL,
    reason text
);
CREATE INDEX cascades_job ON cascades (job);
CREATE INDEX cascades_workflow ON cascades (workflow);

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
    paused smallint NOT NULL,
    max_running bigint NOT NULL DEFAULT 0,
    max_per_worker bigint NOT NULL DEFAULT 0,
    preempts smallint NOT NULL DEFAULT 0,
    limit_id bigint, -- the row of `limits` that counts what runs of it
    isolation text,
    timeout_ms bigint
);

CREATE TABLE meta (
    name text COLLATE "C" PRIMARY KEY,
    value bigint NOT NULL
) WITH (fillfactor = 50);

-- Changes, appended: two transactions never meet in one row, and none walks along its dead versions.
-- `fold_counters` adds them up now and then.
CREATE TABLE counters (
    value bigint NOT NULL,
    name text COLLATE "C" NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 10000,
        autovacuum_vacuum_cost_delay = 0);

-- Kind 1 is a transition of a job: "from" × 16 + "to" must be a pair of domain/lifecycle/states.py.
-- The pairs are one literal: each INSERT parses the checks again, and an ARRAY of constants takes as
-- long as the rest of it.
-- A row may hold the same transition of up to 200 jobs, and two in a row (`via` is the state between
-- them, and all jobs take the first one first). `seq` is the number of its last event; the numbers
-- have no gap. Read it through `each_event`, unless only rows with one event are wanted.
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
    via smallint,
    reason text,
    actor text,
    data text,
    jobs bigint[], -- where there are several; `job` is the first of them
    attempts integer[], -- where they differ; `attempt` is the first of them
    CONSTRAINT events_transition CHECK (
        kind <> {event.job} OR "from" * 16 + coalesce(via, "to") = ANY (
            '{{transitions.packed}}'::smallint[]
        )
    ),
    CONSTRAINT events_second CHECK (
        via IS NULL OR kind = {event.job} AND via * 16 + "to" = ANY (
            '{{transitions.packed}}'::smallint[]
        )
    )
);
-- Transitions at times that the rows of a job know are found by these times; see `events_of_job`.
CREATE INDEX events_rare ON events (job, seq)
    WHERE jobs IS NULL AND (
        kind <> {event.job} OR "from" * 16 + "to" <> ALL (ARRAY[{transitions.usual}])
    );

-- Every event, in a row of its own; `row_seq` is the key of the row that holds it. Statements say
-- between which rows to look, because the planner cannot tell from `seq`: a row holds at most 400.
CREATE VIEW each_event AS
SELECT e.seq AS row_seq, e.seq - size.jobs * size.steps + one.place AS seq, e.at,
       CASE WHEN e.jobs IS NULL THEN e.job ELSE e.jobs[(one.place - 1) % size.jobs + 1] END AS job,
       e.worker, e.incarnation,
       CASE WHEN e.attempts IS NULL THEN e.attempt
            ELSE e.attempts[(one.place - 1) % size.jobs + 1] END AS attempt,
       e.kind,
       CASE WHEN one.place <= size.jobs THEN e."from" ELSE e.via END AS "from",
       CASE WHEN one.place > size.jobs * (size.steps - 1) THEN e."to" ELSE e.via END AS "to",
       e.reason, e.actor, e.data
FROM events AS e
CROSS JOIN LATERAL (
    SELECT coalesce(cardinality(e.jobs), 1) AS jobs, CASE WHEN e.via IS NULL THEN 1 ELSE 2 END AS steps
) AS size
CROSS JOIN LATERAL generate_series(1, size.jobs * size.steps) AS one (place);

-- Who did what, from where; repeated calls share a row and are counted.
CREATE TABLE audit (
    id bigint PRIMARY KEY DEFAULT nextval('audit_ids'),
    at bigint NOT NULL,
    calls bigint NOT NULL,
    token bigint NOT NULL,
    status integer NOT NULL,
    actor text NOT NULL,
    role text NOT NULL,
    address text NOT NULL,
    action text NOT NULL,
    resource text NOT NULL,
    namespace text NOT NULL,
    code text NOT NULL,
    request text NOT NULL,
    about text NOT NULL
);
CREATE INDEX audit_at ON audit (at);

-- Who may do what. Only digests of secrets are kept.
CREATE TABLE tokens (
    id bigint PRIMARY KEY DEFAULT nextval('token_ids'),
    worker bigint NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    revoked_at bigint NOT NULL,
    incarnation bigint NOT NULL,
    last_used_at bigint NOT NULL,
    parent bigint NOT NULL,
    name text NOT NULL,
    digest text COLLATE "C" NOT NULL UNIQUE,
    role text NOT NULL,
    kind text NOT NULL,
    namespaces text[] NOT NULL
);

CREATE TABLE codes (
    digest text COLLATE "C" PRIMARY KEY,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    used_at bigint NOT NULL,
    takeover bigint NOT NULL,
    token bigint NOT NULL,
    worker text NOT NULL
);

-- What is known of files; their bytes are blobs.
CREATE TABLE logs (
    job bigint NOT NULL,
    bytes bigint NOT NULL,
    gap_from bigint NOT NULL,
    gap_to bigint NOT NULL,
    attempt integer NOT NULL,
    state smallint NOT NULL,
    PRIMARY KEY (job, attempt)
) WITH (fillfactor = 50);

-- Logs that have not ended.
CREATE INDEX logs_streaming ON logs (job, attempt) WHERE state = {log.streaming};

-- Logs that nobody will complete, of which there are few.
CREATE INDEX logs_lost ON logs (job, attempt) WHERE state = {log.lost};

CREATE TABLE artifacts (
    job bigint NOT NULL,
    size bigint NOT NULL,
    attempt integer NOT NULL,
    name text COLLATE "C" NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    content_type text NOT NULL,
    PRIMARY KEY (job, attempt, name)
);
CREATE INDEX artifacts_sha256 ON artifacts (sha256);

CREATE TABLE names (
    job bigint NOT NULL,
    set_at bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    artifact text NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, name)
);
CREATE INDEX names_sha256 ON names (sha256);

CREATE TABLE uploads (
    size bigint NOT NULL,
    used_at bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    content_type text NOT NULL,
    created_by text NOT NULL,
    PRIMARY KEY (namespace, sha256)
);
CREATE INDEX uploads_sha256 ON uploads (sha256);
CREATE INDEX uploads_used_at ON uploads (used_at);

CREATE TABLE progress (
    job bigint PRIMARY KEY,
    at bigint NOT NULL,
    attempt integer NOT NULL,
    value bytea NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE dynamic (
    job bigint PRIMARY KEY,
    attempt integer NOT NULL,
    body bytea NOT NULL
);

-- What functions have done so far, and what they wait for.
CREATE TABLE steps (
    job bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    asked_at bigint NOT NULL,
    until bigint,
    ended_at bigint,
    signal bigint,
    attempt integer NOT NULL,
    kind smallint NOT NULL,
    state smallint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C",
    actor text,
    body bytea,
    value bytea,
    PRIMARY KEY (job, key)
);
CREATE INDEX steps_waiting ON steps (namespace, name, job)
    WHERE kind = {step.signal} AND state = {step_state.pending};
CREATE INDEX steps_asked ON steps (job)
    WHERE kind = {step.question} AND state = {step_state.pending};
CREATE INDEX steps_joining ON steps (job, key)
    WHERE kind = {step.jobs} AND state = {step_state.pending};

CREATE TABLE signals (
    id bigint PRIMARY KEY,
    at bigint NOT NULL,
    is_open smallint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    actor text,
    payload bytea NOT NULL,
    UNIQUE (namespace, name, key)
);
CREATE INDEX signals_name ON signals (namespace, name, id);
CREATE INDEX signals_at ON signals (at);
-- Those that waiting jobs may not have been told of.
CREATE INDEX signals_open ON signals (id) WHERE is_open = 1;

-- Where a replay begins once the oldest events are gone.
CREATE TABLE baseline (
    id bigint NOT NULL,
    kind smallint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (kind, id)
);

-- Jobs that ended without completing, of which there are few. An index on the state in
-- `jobs` would make every end of a job a costly update.
CREATE TABLE bad_ends (
    job bigint PRIMARY KEY,
    state smallint NOT NULL
);

CREATE INDEX jobs_workflow ON jobs (workflow, id) WHERE workflow IS NOT NULL;
CREATE INDEX keys_job ON keys (job);
-- Jobs that back off or are suspended; planned ones may be many.
CREATE INDEX due_unplanned ON due (job) WHERE state <> {state.queued};

-- Templates, each version a row that never changes.
CREATE TABLE templates (
    created_at bigint NOT NULL,
    removed_at bigint,
    version integer NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    digest text NOT NULL,
    created_by text,
    body bytea NOT NULL,
    PRIMARY KEY (namespace, name, version)
);

CREATE TABLE schedules (
    id bigint PRIMARY KEY,
    every_ms bigint,
    next_at bigint,
    last_slot bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    catch_up_limit integer NOT NULL,
    paused smallint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    cron text,
    zone text NOT NULL,
    overlap text NOT NULL,
    catch_up text NOT NULL,
    created_by text,
    body bytea NOT NULL,
    CHECK ((cron IS NULL) <> (every_ms IS NULL)),
    UNIQUE (namespace, name)
);
CREATE INDEX schedules_due ON schedules (next_at, id) WHERE paused = 0 AND next_at IS NOT NULL;

CREATE TABLE schedule_runs (
    id bigint PRIMARY KEY,
    schedule bigint NOT NULL,
    slot bigint,
    workflow bigint,
    created_at bigint NOT NULL,
    changed_at bigint NOT NULL,
    state smallint NOT NULL,
    reason text,
    actor text
);
-- At most one run for each slot; those started by hand have none.
CREATE UNIQUE INDEX schedule_runs_slot ON schedule_runs (schedule, slot) WHERE slot IS NOT NULL;
CREATE INDEX schedule_runs_schedule ON schedule_runs (schedule, id);
CREATE INDEX schedule_runs_waiting ON schedule_runs (schedule) WHERE state = {run.waiting};
CREATE INDEX schedule_runs_open ON schedule_runs (schedule, state, id) WHERE state < {run.ended};
CREATE INDEX schedule_runs_ended ON schedule_runs (changed_at, id) WHERE state >= {run.ended};

CREATE TABLE reactions (
    id bigint PRIMARY KEY,
    workflow bigint NOT NULL,
    next_at bigint NOT NULL,
    created_at bigint NOT NULL,
    finished_at bigint,
    result bigint,
    run integer NOT NULL,
    place integer NOT NULL,
    tries integer NOT NULL,
    occasion smallint NOT NULL,
    kind smallint NOT NULL,
    state smallint NOT NULL,
    outcome smallint NOT NULL,
    message text,
    UNIQUE (workflow, run, occasion, place)
);
CREATE INDEX reactions_due ON reactions (next_at, id) WHERE state = {reaction.pending};
CREATE INDEX reactions_ended ON reactions (finished_at, id) WHERE state > {reaction.pending};

-- Tests set a time here, and replace `windlass_now()` with a function that reads it.
CREATE TABLE injected_clock (
    at bigint NOT NULL
);

-- What workflows were submitted with, apart from the rows that every job's end rewrites.
CREATE TABLE workflow_about (
    workflow bigint PRIMARY KEY,
    base integer NOT NULL,
    key text,
    reason text,
    body bytea NOT NULL
);

CREATE TABLE workflow_keys (
    workflow bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, key)
);
CREATE INDEX workflow_keys_workflow ON workflow_keys (workflow);

-- Those that have not ended.
CREATE INDEX workflows_unfinished ON workflows (id) WHERE state < {workflow.completed};

-- The newest starts of jobs under a rate, as JSON, oldest first.
CREATE TABLE rates (
    keep integer NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    starts text NOT NULL,
    PRIMARY KEY (namespace, key)
) WITH (fillfactor = 50);

-- Workers kept free for a large job: one worker a job, one job a worker.
CREATE TABLE reservations (
    worker bigint PRIMARY KEY,
    job bigint NOT NULL UNIQUE,
    shape integer NOT NULL,
    since bigint NOT NULL
);

CREATE TABLE namespace_weights (
    namespace text COLLATE "C" PRIMARY KEY,
    weight integer NOT NULL
);

-- What completed attempts took, per shape and measure; buckets is a JSON object.
CREATE TABLE statistics (
    values_seen bigint NOT NULL,
    weight double precision NOT NULL,
    total double precision NOT NULL,
    low bigint NOT NULL,
    high bigint NOT NULL,
    updated_at bigint NOT NULL,
    measure smallint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    buckets text NOT NULL,
    PRIMARY KEY (namespace, queue, kind, measure)
) WITH (fillfactor = 50);

-- Figures over time, added up from the events; `body` is JSON (see domain/rows/series.py).
CREATE TABLE series (
    step bigint NOT NULL,
    at bigint NOT NULL,
    kind smallint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (kind, step, at, namespace, name)
);

-- What a job's newest attempt took of its machine, where that is known.
CREATE TABLE usage (
    job bigint PRIMARY KEY,
    peak_memory bigint NOT NULL,
    attempt integer NOT NULL
);

-- Jobs that have to start or to end before a time.
CREATE TABLE deadlines (
    at bigint NOT NULL,
    job bigint NOT NULL,
    PRIMARY KEY (at, job)
);

-- What workers reported until then: a job is not refused for what is only missing today.
CREATE TABLE past_metadata (
    worker bigint NOT NULL,
    until bigint NOT NULL,
    digest text COLLATE "C" NOT NULL,
    dynamic text NOT NULL,
    PRIMARY KEY (worker, digest)
);

-- The names of removed workers, for the history of their jobs.
CREATE TABLE past_workers (
    id bigint PRIMARY KEY,
    name text COLLATE "C" NOT NULL
);

-- Pools, and what they do at the moment.
CREATE TABLE pools (
    id bigint PRIMARY KEY,
    next_at bigint NOT NULL,
    started_at bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    failures integer NOT NULL,
    state smallint NOT NULL,
    name text COLLATE "C" NOT NULL UNIQUE,
    message text,
    learned text,
    created_by text,
    body bytea NOT NULL
);

CREATE TABLE pool_workers (
    id bigint PRIMARY KEY,
    pool bigint NOT NULL,
    worker bigint,
    last_lease bigint NOT NULL,
    requested_at bigint NOT NULL,
    changed_at bigint NOT NULL,
    idle_since bigint,
    charged_until bigint NOT NULL,
    tries integer NOT NULL,
    state smallint NOT NULL,
    spot smallint NOT NULL,
    token text NOT NULL UNIQUE,
    machine text,
    reason text
);
CREATE INDEX pool_workers_living ON pool_workers (id) WHERE state < {pool_worker.gone};
CREATE INDEX pool_workers_gone ON pool_workers (changed_at, id) WHERE state = {pool_worker.gone};

CREATE TABLE pool_costs (
    ms bigint NOT NULL,
    micros bigint NOT NULL,
    month integer NOT NULL,
    pool text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    PRIMARY KEY (month, pool, namespace, queue)
);

-- Workers of pools come and go, and with them their tokens and codes.
CREATE INDEX tokens_worker ON tokens (worker) WHERE worker > 0;
CREATE INDEX tokens_session ON tokens (expires_at) WHERE kind = 'session';
CREATE INDEX codes_expired ON codes (expires_at, digest);

-- What users submitted in transactions of their own; servers turn it into jobs. The ids in `jobs`
-- are taken already: users know them before their commit.
CREATE TABLE inbox (
    id bigint PRIMARY KEY DEFAULT nextval('inbox_ids'),
    at bigint NOT NULL,
    jobs bigint[] NOT NULL,
    submitted_by text NOT NULL,
    namespaces text[] NOT NULL,
    body text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
-- Finds the row of a job that others name: ids ascend.
CREATE INDEX inbox_last_job ON inbox ((jobs[cardinality(jobs)]));

-- Jobs from `inbox` whose key another job had: that one stands for them.
CREATE TABLE job_aliases (
    job bigint PRIMARY KEY,
    became bigint NOT NULL,
    at bigint NOT NULL
);
CREATE INDEX job_aliases_at ON job_aliases (at, job);

-- One row for each transaction that wrote something, which shows after a lost answer that it was
-- committed (see outcome.py). `mark` is a number that no other transaction has, `at` a time before it.
-- Two tables take turns, so that old rows go away by TRUNCATE. They are hardly ever read: no index.
CREATE TABLE commits_even (mark bigint NOT NULL, at bigint NOT NULL) WITH (autovacuum_enabled = off);
CREATE TABLE commits_odd (mark bigint NOT NULL, at bigint NOT NULL) WITH (autovacuum_enabled = off);

-- Roles of the database that may submit in their transactions; see functions/allow_submit.sql.
CREATE TABLE submitters (
    role text COLLATE "C" PRIMARY KEY,
    namespaces text[] NOT NULL -- empty: all
);

-- Where ids have jumped (see domain/rows/gaps.py).
CREATE TABLE gaps (
    first bigint PRIMARY KEY,
    at bigint NOT NULL,
    last_job bigint NOT NULL,
    last_workflow bigint NOT NULL,
    last_event bigint NOT NULL,
    timeline_before bigint NOT NULL,
    timeline bigint NOT NULL,
    lost smallint NOT NULL
);

-- The timeline of the cluster that servers have seen last, in one row. In another one, ids jump
-- before anything else happens.
CREATE TABLE timelines (
    timeline bigint NOT NULL
);
