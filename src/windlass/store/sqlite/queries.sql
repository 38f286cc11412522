-- Every statement of the SQLite store. `carray(?)` is an array of integers bound as one
-- parameter; CROSS JOIN keeps it the outer loop, so that rows come in the array's order.
-- An INSERT that ends in VALUES (…) is also executed for many rows at once (bulk.py).

-- name: begin
-- The write lock is taken at once: a later upgrade could fail in the middle of the work.
BEGIN IMMEDIATE;

-- name: begin_read
-- The snapshot begins with the first read.
BEGIN;

-- name: commit
-- With synchronous=FULL this returns when the WAL is on the disk.
COMMIT;

-- name: roll_back
-- Nothing of the transaction stays.
ROLLBACK;

-- name: quick_check
-- One finding is enough to refuse the file; without one it answers "ok".
PRAGMA quick_check(1);

-- name: any_table
-- A file without our version number must be empty, or it is somebody else's.
SELECT name FROM sqlite_master LIMIT 1;

-- name: data_version
-- Another number than the last time if another connection has committed meanwhile.
PRAGMA data_version;

-- name: sequences
-- The last number each sequence has given: read when the store opens, and again when
-- another process has written.
SELECT name, value FROM sequences;

-- name: save_sequence
-- Written once a transaction, so that a number is never given again after a restart.
INSERT INTO sequences (name, value) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: newest_event
-- The store's time goes on from here.
SELECT at FROM events ORDER BY seq DESC LIMIT 1;


-- jobs ------------------------------------------------------------------------------

-- name: insert_jobs
-- The columns of NewJob; the others have defaults.
INSERT INTO jobs (
    id, shape, workflow, flags, rank, base, adjustment, age_from, created_at, limit_id,
    timeout_ms, idle_ms, supersedes, spec
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: job_facts
-- The columns of JobFacts; what an end changed stands in `outcomes`.
SELECT
    j.id, j.shape, j.workflow, ifnull(o.state, 0), ifnull(o.flags, j.flags), j.rank, j.base,
    j.adjustment, j.age_from, j.created_at, j.limit_id, j.timeout_ms, j.idle_ms,
    j.supersedes, j.superseded_by, ifnull(o.attempt, j.attempt), ifnull(o.failed, j.failed),
    ifnull(o.lost, j.lost), j.returned, ifnull(o.worker, 0), ifnull(o.incarnation, 0),
    j.excluded
FROM carray(?) AS wanted
CROSS JOIN jobs AS j ON j.id = wanted.value
LEFT JOIN outcomes AS o ON o.job = j.id;

-- name: job_specs
-- What was submitted, as it was submitted.
SELECT id, spec FROM carray(?) AS wanted CROSS JOIN jobs ON id = wanted.value;

-- name: note_tries
-- The counters of JobTry move; the job stays open.
UPDATE jobs SET attempt = ?2, failed = ?3, lost = ?4, returned = ?5, excluded = ?6
WHERE id = ?1;

-- name: insert_outcomes
-- The columns of JobEnd. A second end of one job is refused by the primary key.
INSERT INTO outcomes (
    job, state, flags, attempt, failed, lost, worker, incarnation, assigned_at, started_at,
    finished_at, failure, exit_code, message, reason, result
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_attempts
-- The columns of Attempt: what came before the newest attempt.
INSERT INTO attempts (
    job, number, worker, incarnation, state, failure, exit_code, message, assigned_at,
    started_at, finished_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: attempts
-- Within a job they come ascending by number, as the primary key has them.
SELECT
    a.job, a.number, a.worker, a.incarnation, a.state, a.failure, a.exit_code, a.message,
    a.assigned_at, a.started_at, a.finished_at
FROM carray(?) AS wanted CROSS JOIN attempts AS a ON a.job = wanted.value;

-- name: set_priority
-- The new rank holds for later places; the present place is moved by the engine.
UPDATE jobs SET adjustment = ?2, age_from = ?3, rank = ?4, flags = ?5 WHERE id = ?1;

-- name: set_superseded
-- The old job stays for inspection and points to its successor.
UPDATE jobs SET superseded_by = ?2 WHERE id = ?1;

-- name: last_dependents
-- The chunk that is filled up before another is begun.
SELECT chunk, edges FROM dependents WHERE job = ? ORDER BY chunk DESC LIMIT 1;

-- name: put_dependents
-- A chunk is written whole: at most 1,000 edges of eight bytes.
INSERT OR REPLACE INTO dependents (job, chunk, edges) VALUES (?, ?, ?);

-- name: dependents
-- One chunk of each job that has it.
SELECT d.job, d.edges
FROM carray(?1) AS wanted CROSS JOIN dependents AS d ON d.job = wanted.value AND d.chunk = ?2;

-- name: claim_key
-- Whoever was first keeps the key; who that was is read back.
INSERT INTO keys (namespace, key, job, digest, spans) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- name: key
-- What now stands for a key.
SELECT namespace, key, job, digest, spans FROM keys WHERE namespace = ? AND key = ?;

-- name: point_key
-- The key follows a superseding job.
UPDATE keys SET job = ?3 WHERE namespace = ?1 AND key = ?2;


-- places ----------------------------------------------------------------------------

-- name: insert_ready
-- The columns of Ticket.
INSERT INTO ready (shape, rank, job, attempt, workflow, limit_id, excluded)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: insert_parked
-- The columns of Ticket.
INSERT INTO parked (shape, rank, job, attempt, workflow, limit_id, excluded)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: insert_waits
-- The columns of Wait without its ticket's job.
INSERT INTO waits (
    job, unmet, manual, not_before, age_from, shape, rank, attempt, workflow, limit_id, excluded
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_due
-- The columns of Due without its ticket's job.
INSERT INTO due (at, job, state, shape, rank, attempt, workflow, limit_id, excluded)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: meet
-- Narrow rows by primary key: a join of 1,000 dependents touches few pages. Each value is a
-- job and, in its lowest 18 bits, how many conditions were met.
UPDATE waits SET unmet = unmet - (wanted.value & 0x3ffff)
FROM carray(?) AS wanted WHERE waits.job = wanted.value >> 18;

-- name: free_at_once
-- Tickets of jobs that these are the last conditions of, given as above, and whether they
-- need nothing but to be ready.
SELECT
    w.shape, w.rank, w.job, w.attempt, w.workflow, w.limit_id, w.excluded,
    w.manual = {manual.no} AND w.not_before <= ?2 AND w.limit_id = 0 AND w.age_from >= ?3
FROM carray(?1) AS wanted CROSS JOIN waits AS w ON w.job = wanted.value >> 18
WHERE w.unmet <= wanted.value & 0x3ffff;

-- name: ready_from_waits
-- What was just found, by primary key: cheaper than binding it again.
INSERT INTO ready (shape, rank, job, attempt, workflow, limit_id, excluded)
SELECT w.shape, w.rank, w.job, w.attempt, w.workflow, w.limit_id, w.excluded
FROM carray(?) AS wanted CROSS JOIN waits AS w ON w.job = wanted.value;

-- name: drop_waits
-- They are ready now.
DELETE FROM waits WHERE job IN carray(?);

-- name: meet_manual
-- A manual condition is met once: a second time there is none left to meet.
UPDATE waits SET unmet = unmet - ?2, manual = {manual.no} WHERE job = ?1 AND manual <> {manual.no};

-- name: free_waits
-- Those with nothing left to wait for.
DELETE FROM waits WHERE job IN carray(?) AND unmet <= 0
RETURNING
    job, unmet, manual, not_before, age_from, shape, rank, attempt, workflow, limit_id, excluded;

-- name: waiting
-- Wait, its ticket flattened.
SELECT
    w.job, w.unmet, w.manual, w.not_before, w.age_from, w.shape, w.rank, w.attempt,
    w.workflow, w.limit_id, w.excluded
FROM carray(?) AS wanted CROSS JOIN waits AS w ON w.job = wanted.value;

-- name: take_waits
-- A cancelled or aborted job waits no more.
DELETE FROM waits WHERE job IN carray(?)
RETURNING
    job, unmet, manual, not_before, age_from, shape, rank, attempt, workflow, limit_id, excluded;

-- name: take_due
-- By the unique index on the job, since the caller does not know the time.
DELETE FROM due WHERE job IN carray(?)
RETURNING at, job, state, shape, rank, attempt, workflow, limit_id, excluded;

-- name: take_parked
-- One at a time by primary key: the caller knows where a job stands.
DELETE FROM parked WHERE limit_id = ? AND shape = ? AND rank = ? AND job = ?
RETURNING shape, rank, job, attempt, workflow, limit_id, excluded;

-- name: take_ready
-- One at a time by primary key: the caller knows where a job stands.
DELETE FROM ready WHERE shape = ? AND rank = ? AND job = ?
RETURNING shape, rank, job, attempt, workflow, limit_id, excluded;

-- name: due_now
-- The first entries of the primary key.
SELECT at, job, state, shape, rank, attempt, workflow, limit_id, excluded
FROM due WHERE at <= ? ORDER BY at, job LIMIT ?;

-- name: drop_due
-- Entries that were read just before, by primary key.
DELETE FROM due WHERE at = ? AND job = ?;

-- name: next_due
-- 0 when nothing is planned.
SELECT ifnull(min(at), 0) FROM due;

-- name: peek
-- A walk along the primary key from a lower bound: its cost is the number of rows found.
SELECT shape, rank, job, attempt, workflow, limit_id, excluded
FROM ready WHERE shape = ? AND (rank, job) >= (?, ?) ORDER BY rank, job LIMIT ?;

-- name: heads
-- A loose index scan: one seek for each shape, however many jobs stand behind its head.
WITH RECURSIVE head (shape, rank, job) AS (
    SELECT -1, 0, 0
    UNION ALL
    SELECT r.shape, r.rank, r.job
    FROM head CROSS JOIN ready AS r ON (r.shape, r.rank, r.job) = (
        SELECT shape, rank, job FROM ready
        WHERE shape > head.shape ORDER BY shape, rank, job LIMIT 1
    )
)
SELECT shape, rank, job FROM head WHERE shape >= 0;

-- name: count_ready
-- The partial index holds jobs with a limit only; the second condition lets it be used.
SELECT count(*) FROM ready WHERE limit_id = ? AND shape = ? AND limit_id > 0;

-- name: worst_ready
-- By the same index; there are no more than the limit allows.
SELECT shape, rank, job, attempt, workflow, limit_id, excluded
FROM ready WHERE limit_id = ? AND shape = ? AND limit_id > 0
ORDER BY rank DESC, job DESC LIMIT 1;

-- name: parked_shapes
-- A loose index scan over the shapes below one limit.
WITH RECURSIVE below (shape) AS (
    SELECT min(shape) FROM parked WHERE limit_id = ?1
    UNION ALL
    SELECT (SELECT min(shape) FROM parked WHERE limit_id = ?1 AND shape > below.shape)
    FROM below WHERE below.shape IS NOT NULL
)
SELECT shape FROM below WHERE shape IS NOT NULL;

-- name: best_parked
-- The best of one shape below one limit.
SELECT shape, rank, job, attempt, workflow, limit_id, excluded
FROM parked WHERE limit_id = ? AND shape = ? ORDER BY rank, job LIMIT ?;


-- name: unpark
-- Rows that were read just before, by primary key.
DELETE FROM parked WHERE limit_id = ? AND shape = ? AND rank = ? AND job = ?;

-- name: count_ready_span
-- Whether exactly the wanted jobs stand between the first and the last of them.
SELECT count(*), sum(job) FROM ready
WHERE shape = ?1 AND (rank, job) >= (?2, ?3) AND (rank, job) <= (?4, ?5);

-- name: remove_ready_one
-- Of many shapes a few jobs each: one by one.
DELETE FROM ready WHERE shape = ? AND rank = ? AND job = ?;

-- name: remove_ready_span
-- A range takes a third of the time of single keys.
DELETE FROM ready WHERE shape = ?1 AND (rank, job) >= (?2, ?3) AND (rank, job) <= (?4, ?5);

-- name: remove_ready
-- A walk over what was peeked; what lies between and was not asked for stays.
DELETE FROM ready
WHERE shape = ?1 AND (rank, job) >= (?2, ?3) AND (rank, job) <= (?4, ?5) AND job IN carray(?6);


-- leases ----------------------------------------------------------------------------

-- name: granted_jobs
-- What the worker needs, in the order of the grants.
SELECT id, timeout_ms, idle_ms, spec FROM carray(?) AS wanted
CROSS JOIN jobs ON id = wanted.value;

-- name: lease_to
-- Leases of one worker, numbered in the order of the array: the columns come from `jobs`
-- in half the time of binding them. The smaller timeout that is not 0 counts; 0 is never.
INSERT INTO leases (
    job, attempt, lease, worker, incarnation, state, assigned_at, started_at, activity_at,
    deadline_at, timeout_ms, idle_ms, limit_id
)
SELECT
    j.id, ?2, ?1 + wanted.rowid, ?3, ?4, ?6, ?7, ?8, 0,
    CASE
        WHEN ?6 <> 4 THEN ?9
        WHEN j.timeout_ms = 0 AND j.idle_ms = 0 THEN 0
        ELSE ?9 + min(
            iif(j.timeout_ms, j.timeout_ms, j.idle_ms), iif(j.idle_ms, j.idle_ms, j.timeout_ms)
        )
    END,
    j.timeout_ms, j.idle_ms, ?5
FROM carray(?10) AS wanted CROSS JOIN jobs AS j ON j.id = wanted.value;

-- name: insert_leases
-- The columns of Lease but for the reason.
INSERT INTO leases (
    job, attempt, lease, worker, incarnation, state, assigned_at, started_at, activity_at,
    deadline_at, timeout_ms, idle_ms, limit_id
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: leases
-- By primary key, in the order asked for.
SELECT
    l.job, l.attempt, l.lease, l.worker, l.incarnation, l.state, l.assigned_at, l.started_at,
    l.activity_at, l.deadline_at, l.timeout_ms, l.idle_ms, l.limit_id, l.reason,
    l.queue_limit
FROM carray(?) AS wanted CROSS JOIN leases AS l ON l.job = wanted.value;

-- name: leases_of_workers
-- By the index on the worker, then sorted: a worker holds few.
SELECT
    l.job, l.attempt, l.lease, l.worker, l.incarnation, l.state, l.assigned_at, l.started_at,
    l.activity_at, l.deadline_at, l.timeout_ms, l.idle_ms, l.limit_id, l.reason,
    l.queue_limit
FROM carray(?) AS wanted CROSS JOIN leases AS l ON l.worker = wanted.value
ORDER BY l.lease;

-- name: stopped
-- The partial index holds only leases in canceling or timed_out: most often none.
SELECT l.worker, l.incarnation, l.job, l.attempt, l.state, l.reason
FROM carray(?) AS wanted CROSS JOIN leases AS l ON l.worker = wanted.value AND l.reason IS NOT NULL
ORDER BY l.lease;

-- name: overdue
-- A walk over all leases, of which there are no more than slots in the fleet: cheaper
-- than an index that every claim and every activity would have to move. 0 never comes.
SELECT
    job, attempt, lease, worker, incarnation, state, assigned_at, started_at, activity_at,
    deadline_at, timeout_ms, idle_ms, limit_id, reason, queue_limit
FROM leases WHERE deadline_at BETWEEN 1 AND ?1 AND state BETWEEN {state.assigned} AND {state.running}
ORDER BY deadline_at, job LIMIT ?2;

-- name: orphans
-- A walk over all leases, as above, with one look at each one's worker.
SELECT
    l.job, l.attempt, l.lease, l.worker, l.incarnation, l.state, l.assigned_at, l.started_at,
    l.activity_at, l.deadline_at, l.timeout_ms, l.idle_ms, l.limit_id, l.reason,
    l.queue_limit
FROM leases AS l LEFT JOIN workers AS w ON w.id = l.worker
WHERE w.id IS NULL OR w.incarnation > l.incarnation
ORDER BY l.job LIMIT ?;

-- name: start_leases
-- Only assigned leases become running.
UPDATE leases SET state = {state.running}, started_at = ?2, deadline_at = ?3 WHERE job = ?1 AND state = {state.assigned};

-- name: mark_leases
-- Told to stop; the row stays until the worker reports or is lost.
UPDATE leases SET state = ?1, reason = ?2 WHERE job IN carray(?3);

-- name: touch_leases
-- Activity moves the deadline of jobs with an idle timeout.
UPDATE leases SET activity_at = ?2, deadline_at = ?3 WHERE job = ?1;

-- name: allow_leases
-- How long the media is was found out: the timeout follows it.
UPDATE leases SET timeout_ms = ?2, deadline_at = ?3 WHERE job = ?1;

-- name: drop_leases
-- The attempts are over.
DELETE FROM leases WHERE job IN carray(?);


-- workers ---------------------------------------------------------------------------

-- name: workers
-- The columns of Worker, in the order asked for.
SELECT
    w.id, w.name, w.incarnation, w.seq, w.status, w.last_seen, w.last_lease, w.slots,
    w.static, w.dynamic, w.troubles, w.reason, w.enrolled_at
FROM carray(?) AS wanted CROSS JOIN workers AS w ON w.id = wanted.value;

-- name: worker_by_name
-- A name belongs to one worker for as long as it is enrolled.
SELECT
    id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
    troubles, reason, enrolled_at
FROM workers WHERE name = ?;

-- name: all_workers
-- Ascending by id.
SELECT
    id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
    troubles, reason, enrolled_at
FROM workers ORDER BY id;

-- name: insert_worker
-- The columns of Worker.
INSERT INTO workers (
    id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
    troubles, reason, enrolled_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: update_workers
-- Every column of Worker.
UPDATE workers SET
    name = ?2, incarnation = ?3, seq = ?4, status = ?5, last_seen = ?6, last_lease = ?7,
    slots = ?8, static = ?9, dynamic = ?10, troubles = ?11, reason = ?12, enrolled_at = ?13
WHERE id = ?1;

-- name: beat
-- What a sync changes.
UPDATE workers SET seq = ?2, last_seen = ?3, last_lease = ?4 WHERE id = ?1;

-- name: remove_worker
-- Its leases become orphans, which the cleanup finds.
DELETE FROM workers WHERE id = ?;

-- name: silent_workers
-- A walk over all workers, once in a health cycle.
SELECT
    id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
    troubles, reason, enrolled_at
FROM workers WHERE last_seen < ? AND status IN carray(?) ORDER BY id;


-- workflows and cascades ------------------------------------------------------------

-- name: insert_workflows
-- The columns of WorkflowRow; the counts are a JSON list by state code.
INSERT INTO workflows (
    id, namespace, name, state, run, flags, created_at, finished_at, counts
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: workflows
-- In the order asked for.
SELECT
    w.id, w.namespace, w.name, w.state, w.run, w.flags, w.created_at, w.finished_at, w.counts
FROM carray(?) AS wanted CROSS JOIN workflows AS w ON w.id = wanted.value;

-- name: set_counts
-- Once for each workflow of a batch.
UPDATE workflows SET counts = ?2 WHERE id = ?1;

-- name: set_workflow_state
-- A reopened workflow has a new run and no end.
UPDATE workflows SET state = ?2, run = ?3, finished_at = ?4 WHERE id = ?1;

-- name: insert_cascades
-- The columns of Cascade.
INSERT INTO cascades (id, job, workflow, kind, cursor, reason) VALUES (?, ?, ?, ?, ?, ?);

-- name: oldest_cascade
-- Intents are worked off in the order they were recorded.
SELECT id, job, workflow, kind, cursor, reason FROM cascades ORDER BY id LIMIT 1;

-- name: advance_cascade
-- The chunks below the cursor are done.
UPDATE cascades SET cursor = ?2 WHERE id = ?1;

-- name: remove_cascade
-- All chunks are done.
DELETE FROM cascades WHERE id = ?;

-- name: cascades_of_jobs
-- Is a job's failure still being passed on?
SELECT c.id, c.job, c.workflow, c.kind, c.cursor, c.reason
FROM carray(?) AS wanted CROSS JOIN cascades AS c ON c.job = wanted.value
ORDER BY c.id;

-- name: cascades_of_workflows
-- Is a workflow being stopped or retried?
SELECT c.id, c.job, c.workflow, c.kind, c.cursor, c.reason
FROM carray(?) AS wanted CROSS JOIN cascades AS c ON c.workflow = wanted.value
ORDER BY c.id;

-- name: describe_workflow
-- The columns of WorkflowAbout.
INSERT INTO workflow_about (workflow, base, key, reason, body) VALUES (?, ?, ?, ?, ?);

-- name: workflow_about
-- By primary key.
SELECT a.workflow, a.base, a.key, a.reason, a.body
FROM carray(?) AS wanted CROSS JOIN workflow_about AS a ON a.workflow = wanted.value;

-- name: all_workflow_about
-- By workflow.
SELECT workflow, base, key, reason, body FROM workflow_about ORDER BY workflow;

-- name: set_workflow_reason
-- Why it was canceled.
UPDATE workflow_about SET reason = ?2 WHERE workflow = ?1;

-- name: claim_workflow_key
-- The key is new, or names the one that is to be replaced; else it stays as it is.
INSERT INTO workflow_keys (namespace, key, workflow) VALUES (?1, ?2, ?3)
ON CONFLICT (namespace, key) DO UPDATE SET workflow = excluded.workflow WHERE workflow = ?4;

-- name: workflow_key
-- By primary key.
SELECT workflow FROM workflow_keys WHERE namespace = ? AND key = ?;

-- name: all_workflow_keys
-- By namespace and key.
SELECT namespace, key, workflow FROM workflow_keys ORDER BY namespace, key;

-- name: remove_workflow_about
-- With the workflow.
DELETE FROM workflow_about WHERE workflow IN carray(?);

-- name: remove_workflow_keys
-- The key may be used anew.
DELETE FROM workflow_keys WHERE workflow IN carray(?);

-- name: jobs_of_workflow
-- Along the partial index from an id on.
SELECT
    j.id, j.shape, j.workflow, ifnull(o.state, 0), ifnull(o.flags, j.flags), j.rank, j.base,
    j.adjustment, j.age_from, j.created_at, j.limit_id, j.timeout_ms, j.idle_ms,
    j.supersedes, j.superseded_by, ifnull(o.attempt, j.attempt), ifnull(o.failed, j.failed),
    ifnull(o.lost, j.lost), j.returned, ifnull(o.worker, 0), ifnull(o.incarnation, 0),
    j.excluded
FROM jobs AS j INDEXED BY jobs_workflow LEFT JOIN outcomes AS o ON o.job = j.id
WHERE j.workflow = ?1 AND j.workflow > 0 AND j.id > ?2 ORDER BY j.id LIMIT ?3;

-- name: open_jobs_of_workflow
-- Along the partial index from an id on.
SELECT j.id FROM jobs AS j INDEXED BY jobs_workflow
WHERE j.workflow = ?1 AND j.workflow > 0 AND j.id > ?2
    AND NOT EXISTS (SELECT 1 FROM outcomes AS o WHERE o.job = j.id)
ORDER BY j.id LIMIT ?3;

-- name: jobs_outside
-- By primary key.
SELECT j.id FROM carray(?2) AS wanted CROSS JOIN jobs AS j ON j.id = wanted.value
WHERE j.workflow <> ?1;

-- name: unfinished_workflows
-- By the partial index: 1 to 3 are the states that are no ends.
SELECT id, namespace, name, state, run, flags, created_at, finished_at, counts
FROM workflows INDEXED BY workflows_unfinished WHERE state < {workflow.complete} AND id > ?1 ORDER BY id LIMIT ?2;

-- name: newest_workflows
-- A bounded walk back from an id.
SELECT id, namespace, name, state, run, flags, created_at, finished_at, counts
FROM workflows WHERE id < ?1 ORDER BY id DESC LIMIT ?2;

-- name: recount_workflow
-- Each job by its end or its place (blocked if it stands nowhere), and whether it is forgiven.
SELECT
    coalesce(
        o.state, l.state, d.state,
        CASE WHEN EXISTS (
            SELECT 1 FROM ready AS r WHERE (r.shape, r.rank, r.job) = (j.shape, j.rank, j.id)
        ) OR EXISTS (
            SELECT 1 FROM parked AS p
            WHERE (p.limit_id, p.shape, p.rank, p.job) = (j.limit_id, j.shape, j.rank, j.id)
        ) THEN {state.queued} ELSE {state.blocked} END
    ) AS standing,
    ifnull(o.state > {state.completed} AND o.flags & {flag.allow_failure}, 0) AS forgiven,
    count(*)
FROM jobs AS j INDEXED BY jobs_workflow
LEFT JOIN outcomes AS o ON o.job = j.id
LEFT JOIN leases AS l ON l.job = j.id
LEFT JOIN due AS d ON d.job = j.id
WHERE j.workflow = ?1 AND j.workflow > 0 AND j.superseded_by = 0
GROUP BY standing, forgiven;


-- limits ----------------------------------------------------------------------------

-- name: limit_id
-- By the unique key.
SELECT id FROM limits WHERE namespace = ? AND key = ?;

-- name: insert_limit
-- A key seen for the first time; nothing is leased under it yet.
INSERT INTO limits (id, namespace, key, max, leased) VALUES (?, ?, ?, ?, 0);

-- name: set_limit
-- The newest submit says how many.
UPDATE limits SET max = ?2 WHERE id = ?1;

-- name: limits
-- In the order asked for.
SELECT l.id, l.namespace, l.key, l.max, l.leased
FROM carray(?) AS wanted CROSS JOIN limits AS l ON l.id = wanted.value;

-- name: parked_limits
-- A loose index scan over the limits under which jobs are parked.
WITH RECURSIVE holding (limit_id) AS (
    SELECT min(limit_id) FROM parked
    UNION ALL
    SELECT (SELECT min(limit_id) FROM parked WHERE limit_id > holding.limit_id)
    FROM holding WHERE holding.limit_id IS NOT NULL
)
SELECT limit_id FROM holding WHERE limit_id IS NOT NULL;

-- name: bump_limits
-- Slots taken and freed.
UPDATE limits SET leased = leased + ?2 WHERE id = ?1;


-- catalog ---------------------------------------------------------------------------

-- name: shape_id
-- By the unique digest.
SELECT id FROM shapes WHERE digest = ?;

-- name: insert_shape
-- Many jobs, few shapes.
INSERT INTO shapes (id, digest, body) VALUES (?, ?, ?);

-- name: shapes_after
-- Engines remember the last one they know.
SELECT id, digest, body FROM shapes WHERE id > ? ORDER BY id;

-- name: queues
-- Ascending by name, as the primary key has them.
SELECT name, weight, paused, max_running, max_per_worker, preempts, limit_id
FROM queues ORDER BY name;

-- name: put_queue
-- Paused, resumed or reweighted.
INSERT OR REPLACE INTO queues (
    name, weight, paused, max_running, max_per_worker, preempts, limit_id
) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: meta
-- Settings that live in the store.
SELECT name, value FROM meta ORDER BY name;

-- name: set_meta
-- One setting.
INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?);


-- log -------------------------------------------------------------------------------

-- name: insert_events
-- The columns of Event. The number it comes with is ignored: it gets the one after the
-- newest event.
INSERT INTO events (
    seq, at, kind, job, attempt, worker, incarnation, from_state, to_state, reason, actor, data
) VALUES (? + NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: read_events
-- A walk along the primary key.
SELECT
    seq, at, kind, job, attempt, worker, incarnation, from_state, to_state, reason, actor, data
FROM events WHERE seq > ? ORDER BY seq LIMIT ?;

-- name: rare_events_of_job
-- By the partial index, whose condition must be repeated word for word.
SELECT
    seq, at, kind, job, attempt, worker, incarnation, from_state, to_state, reason, actor, data
FROM events
WHERE job = ? AND
    CASE from_state
        WHEN {state.new} THEN to_state <> {state.queued}
        WHEN {state.queued} THEN to_state <> {state.assigned}
        WHEN {state.assigned} THEN to_state <> {state.running}
        WHEN {state.running} THEN to_state <> {state.completed}
        ELSE 1
    END
ORDER BY seq;

-- name: events_of_job_between
-- Those of one moment, which is one transaction or a few.
SELECT
    seq, at, kind, job, attempt, worker, incarnation, from_state, to_state, reason, actor, data
FROM events WHERE job = ?1 AND seq BETWEEN ?2 AND ?3 ORDER BY seq;

-- name: job_times
-- When the usual transitions of a job happened.
SELECT created_at FROM jobs WHERE id = ?1
UNION SELECT assigned_at FROM leases WHERE job = ?1
UNION SELECT started_at FROM leases WHERE job = ?1
UNION SELECT assigned_at FROM outcomes WHERE job = ?1
UNION SELECT started_at FROM outcomes WHERE job = ?1
UNION SELECT finished_at FROM outcomes WHERE job = ?1
UNION SELECT assigned_at FROM attempts WHERE job = ?1
UNION SELECT started_at FROM attempts WHERE job = ?1;

-- name: job_standing
-- The state of a job that ended or is leased; NULL for one that waits.
SELECT ifnull(o.state, l.state)
FROM jobs AS j
LEFT JOIN outcomes AS o ON o.job = j.id
LEFT JOIN leases AS l ON l.job = j.id
WHERE j.id = ?;

-- name: event_time
-- The next event's, where retention has removed this one.
SELECT at FROM events WHERE seq >= ? ORDER BY seq LIMIT 1;

-- name: newest_event_seq
-- 0 while the log is empty.
SELECT ifnull(max(seq), 0) FROM events;

-- name: events_of_job
-- The whole log is read, when nothing else finds them all.
SELECT
    seq, at, kind, job, attempt, worker, incarnation, from_state, to_state, reason, actor, data
FROM events WHERE job = ? ORDER BY seq;

-- name: bump_counter
-- Each server has rows of its own.
INSERT INTO counters (server, name, value) VALUES (?, ?, ?)
ON CONFLICT (server, name) DO UPDATE SET value = value + excluded.value;

-- name: counters
-- Summed over the servers.
SELECT name, sum(value) FROM counters GROUP BY name ORDER BY name;


-- snapshot: whole tables, in one order ----------------------------------------------

-- name: all_jobs
-- JobRecord: the facts, then the rest.
SELECT
    j.id, j.shape, j.workflow, ifnull(o.state, 0), ifnull(o.flags, j.flags), j.rank, j.base,
    j.adjustment, j.age_from, j.created_at, j.limit_id, j.timeout_ms, j.idle_ms,
    j.supersedes, j.superseded_by, ifnull(o.attempt, j.attempt), ifnull(o.failed, j.failed),
    ifnull(o.lost, j.lost), j.returned, ifnull(o.worker, 0), ifnull(o.incarnation, 0),
    j.excluded,
    ifnull(o.assigned_at, 0), ifnull(o.started_at, 0), ifnull(o.finished_at, 0),
    ifnull(o.failure, 0), o.exit_code, o.message, o.reason, o.result, j.spec
FROM jobs AS j LEFT JOIN outcomes AS o ON o.job = j.id ORDER BY j.id;

-- name: all_waits
-- By job.
SELECT
    job, unmet, manual, not_before, age_from, shape, rank, attempt, workflow, limit_id, excluded
FROM waits ORDER BY job;

-- name: all_due
-- In the order they fall due.
SELECT at, job, state, shape, rank, attempt, workflow, limit_id, excluded
FROM due ORDER BY at, job;

-- name: all_parked
-- By limit, then as `ready`.
SELECT shape, rank, job, attempt, workflow, limit_id, excluded
FROM parked ORDER BY limit_id, shape, rank, job;

-- name: all_ready
-- In the order they are given out within a shape.
SELECT shape, rank, job, attempt, workflow, limit_id, excluded
FROM ready ORDER BY shape, rank, job;

-- name: all_leases
-- By job.
SELECT
    job, attempt, lease, worker, incarnation, state, assigned_at, started_at, activity_at,
    deadline_at, timeout_ms, idle_ms, limit_id, reason, queue_limit
FROM leases ORDER BY job;

-- name: all_attempts
-- By job and number.
SELECT
    job, number, worker, incarnation, state, failure, exit_code, message, assigned_at,
    started_at, finished_at
FROM attempts ORDER BY job, number;

-- name: all_dependents
-- The chunks of a job follow each other.
SELECT job, edges FROM dependents ORDER BY job, chunk;

-- name: all_limits
-- By id.
SELECT id, namespace, key, max, leased FROM limits ORDER BY id;

-- name: all_keys
-- By namespace and key.
SELECT namespace, key, job, digest, spans FROM keys ORDER BY namespace, key;

-- name: all_workflows
-- By id.
SELECT id, namespace, name, state, run, flags, created_at, finished_at, counts
FROM workflows ORDER BY id;

-- name: all_cascades
-- By id.
SELECT id, job, workflow, kind, cursor, reason FROM cascades ORDER BY id;

-- name: ready_from_jobs
-- Jobs that were just inserted and are ready at once: cheaper than binding them again.
INSERT INTO ready (shape, rank, job, attempt, workflow, limit_id)
SELECT shape, rank, id, 0, workflow, limit_id FROM jobs WHERE id BETWEEN ? AND ?;

-- name: waits_from_jobs
-- The same for jobs that wait. Each value is a job and, in its lowest 18 bits, for how many
-- others it waits: one array, since two of them cannot be walked side by side.
INSERT INTO waits (
    job, unmet, manual, not_before, age_from, shape, rank, attempt, workflow, limit_id
)
SELECT
    j.id, wanted.value & 0x3ffff, 0, 0, j.age_from, j.shape, j.rank, 0, j.workflow, j.limit_id
FROM carray(?) AS wanted CROSS JOIN jobs AS j ON j.id = wanted.value >> 18;

-- name: plain_leases
-- Running attempts of jobs on which nothing else hangs, with what their end copies.
SELECT
    l.job, l.attempt, l.worker, l.incarnation, l.assigned_at, l.started_at, j.flags, j.failed,
    j.lost
FROM carray(?) AS wanted
CROSS JOIN leases AS l ON l.job = wanted.value
CROSS JOIN jobs AS j ON j.id = l.job
WHERE l.state = {state.running} AND l.limit_id = 0 AND l.queue_limit = 0 AND j.workflow = 0
    AND NOT EXISTS (SELECT 1 FROM dependents AS d WHERE d.job = l.job)
    AND NOT EXISTS (SELECT 1 FROM waits AS w WHERE w.job = l.job);

-- name: tied_leases
-- The same for jobs with a workflow or dependents, and what counts them.
SELECT
    l.job, l.attempt, l.worker, l.incarnation, l.assigned_at, l.started_at, j.flags, j.failed,
    j.lost, j.shape, j.workflow
FROM carray(?) AS wanted
CROSS JOIN leases AS l ON l.job = wanted.value
CROSS JOIN jobs AS j ON j.id = l.job
WHERE l.state = {state.running} AND l.limit_id = 0 AND l.queue_limit = 0
    AND NOT EXISTS (SELECT 1 FROM waits AS w WHERE w.job = l.job);

-- name: plain_leases_between
-- The same for a stretch of jobs, if nothing hangs on any job from ?2 to ?3: asked once, not
-- for each.
SELECT
    l.job, l.attempt, l.worker, l.incarnation, l.assigned_at, l.started_at, j.flags, j.failed,
    j.lost
FROM carray(?1) AS wanted
CROSS JOIN leases AS l ON l.job = wanted.value
CROSS JOIN jobs AS j ON j.id = l.job
WHERE l.state = {state.running} AND l.limit_id = 0 AND l.queue_limit = 0 AND j.workflow = 0
    AND NOT EXISTS (SELECT 1 FROM dependents AS d WHERE d.job BETWEEN ?2 AND ?3)
    AND NOT EXISTS (SELECT 1 FROM waits AS w WHERE w.job BETWEEN ?2 AND ?3);

-- name: equal_events
-- Equal transitions of many jobs: all columns but the job are the same.
INSERT INTO events (
    at, kind, job, attempt, worker, incarnation, from_state, to_state, reason, actor,
    data
)
SELECT ?1, ?2, value, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 FROM carray(?11);

-- name: end_blocked
-- A job that runs while it keeps a wait (2) goes on.
DELETE FROM waits WHERE job IN carray(?) AND manual <> {manual.kept_while_running} RETURNING job;

-- name: places_of_jobs
-- Where these jobs would stand in `ready`.
SELECT j.shape, j.rank, j.id FROM carray(?) AS wanted CROSS JOIN jobs AS j ON j.id = wanted.value;

-- name: end_ready_span
-- Those of these jobs that stand in one stretch of `ready`.
DELETE FROM ready
WHERE shape = ?1 AND (rank, job) >= (?2, ?3) AND (rank, job) <= (?4, ?5) AND job IN carray(?6)
RETURNING job;

-- name: end_ready
-- Those of these jobs that stand in `ready`, one by one.
DELETE FROM ready WHERE (shape, rank, job) IN (
    SELECT j.shape, j.rank, j.id FROM carray(?) AS wanted
    CROSS JOIN jobs AS j ON j.id = wanted.value
) RETURNING job;

-- name: waited
-- The columns of Waited; all of them were in the state ?2.
SELECT j.id, ?2, j.shape, j.workflow, j.limit_id, j.flags, j.attempt
FROM carray(?1) AS wanted CROSS JOIN jobs AS j ON j.id = wanted.value;

-- name: end_waiting
-- The outcomes of jobs that end without an attempt.
INSERT INTO outcomes (
    job, state, flags, attempt, failed, lost, worker, incarnation, assigned_at, started_at,
    finished_at, failure, reason
)
SELECT j.id, ?2, j.flags, j.attempt, j.failed, j.lost, 0, 0, 0, 0, ?3, 0, ?4
FROM carray(?1) AS wanted CROSS JOIN jobs AS j ON j.id = wanted.value;

-- name: count_leases
-- What a worker holds already counts against its slots.
SELECT l.worker, count(*) FROM carray(?) AS wanted
CROSS JOIN leases AS l ON l.worker = wanted.value GROUP BY l.worker;


-- access ----------------------------------------------------------------------------

-- name: insert_token
-- The columns of Token; the namespaces are a JSON list.
INSERT INTO tokens (
    id, name, digest, role, namespaces, worker, created_at, expires_at, revoked_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: token_by_digest
-- By the unique digest, once for each request.
SELECT id, name, digest, role, namespaces, worker, created_at, expires_at, revoked_at
FROM tokens WHERE digest = ?;

-- name: all_tokens
-- By id.
SELECT id, name, digest, role, namespaces, worker, created_at, expires_at, revoked_at
FROM tokens ORDER BY id;

-- name: revoke_token
-- The first one who does so is told.
UPDATE tokens SET revoked_at = ?2 WHERE id = ?1 AND revoked_at = 0 RETURNING id;

-- name: insert_code
-- The columns of Code.
INSERT INTO codes (digest, created_at, expires_at, used_at) VALUES (?, ?, ?, ?);

-- name: use_code
-- The first one who does so is told, if it is not too late.
UPDATE codes SET used_at = ?2 WHERE digest = ?1 AND used_at = 0 AND expires_at > ?2
RETURNING digest;

-- name: all_codes
-- By digest.
SELECT digest, created_at, expires_at, used_at FROM codes ORDER BY digest;


-- files -----------------------------------------------------------------------------

-- name: log
-- By primary key.
SELECT job, attempt, state, bytes, gap_from, gap_to FROM logs WHERE job = ? AND attempt = ?;

-- name: put_log
-- The columns of LogRow.
INSERT OR REPLACE INTO logs (job, attempt, state, bytes, gap_from, gap_to)
VALUES (?, ?, ?, ?, ?, ?);

-- name: logs_of_jobs
-- Within a job they come ascending by attempt, as the primary key has them.
SELECT l.job, l.attempt, l.state, l.bytes, l.gap_from, l.gap_to
FROM carray(?) AS wanted CROSS JOIN logs AS l ON l.job = wanted.value;

-- name: streaming_logs
-- By the partial index.
SELECT job, attempt, state, bytes, gap_from, gap_to FROM logs
WHERE state = {log.streaming} AND job > ?1 ORDER BY job, attempt LIMIT ?2;

-- name: all_logs
-- By job and attempt.
SELECT job, attempt, state, bytes, gap_from, gap_to FROM logs ORDER BY job, attempt;

-- name: put_artifacts
-- The columns of ArtifactRow.
INSERT OR REPLACE INTO artifacts (job, attempt, name, sha256, size, content_type)
VALUES (?, ?, ?, ?, ?, ?);

-- name: artifacts_of_jobs
-- Within a job by attempt and name, as the primary key has them.
SELECT a.job, a.attempt, a.name, a.sha256, a.size, a.content_type
FROM carray(?) AS wanted CROSS JOIN artifacts AS a ON a.job = wanted.value;

-- name: all_artifacts
-- By job, attempt and name.
SELECT job, attempt, name, sha256, size, content_type FROM artifacts
ORDER BY job, attempt, name;

-- name: put_name
-- The columns of NameRow.
INSERT OR REPLACE INTO names (namespace, name, job, artifact, sha256, set_at)
VALUES (?, ?, ?, ?, ?, ?);

-- name: name
-- By primary key.
SELECT namespace, name, job, artifact, sha256, set_at FROM names
WHERE namespace = ? AND name = ?;

-- name: names_of_namespace
-- A span of the primary key.
SELECT namespace, name, job, artifact, sha256, set_at FROM names
WHERE namespace = ? ORDER BY name;

-- name: all_names
-- By namespace and name.
SELECT namespace, name, job, artifact, sha256, set_at FROM names ORDER BY namespace, name;

-- name: referenced
-- By both indexes on digests, one digest at a time.
SELECT ?1 WHERE EXISTS (SELECT 1 FROM artifacts WHERE sha256 = ?1)
    OR EXISTS (SELECT 1 FROM names WHERE sha256 = ?1);

-- name: put_progress
-- The columns of Progress; the newest one replaces the others.
INSERT OR REPLACE INTO progress (job, attempt, value, at) VALUES (?, ?, ?, ?);

-- name: progress_of_jobs
-- By primary key.
SELECT p.job, p.attempt, p.value, p.at
FROM carray(?) AS wanted CROSS JOIN progress AS p ON p.job = wanted.value;

-- name: all_progress
-- By job.
SELECT job, attempt, value, at FROM progress ORDER BY job;

-- name: put_dynamic
-- The columns of Dynamic; the newest one replaces the others.
INSERT OR REPLACE INTO dynamic (job, attempt, body) VALUES (?, ?, ?);

-- name: dynamic_of_jobs
-- By primary key.
SELECT d.job, d.attempt, d.body
FROM carray(?) AS wanted CROSS JOIN dynamic AS d ON d.job = wanted.value;

-- name: all_dynamic
-- By job.
SELECT job, attempt, body FROM dynamic ORDER BY job;


-- views -----------------------------------------------------------------------------

-- name: scan_jobs
-- A bounded walk back from an id: whether the rows match is seen by the reader.
SELECT j.id, j.shape, ifnull(o.state, 0)
FROM jobs AS j LEFT JOIN outcomes AS o ON o.job = j.id
WHERE j.id < ?1 ORDER BY j.id DESC LIMIT ?2;

-- name: scan_leases
-- The newest jobs under a lease.
SELECT l.job, j.shape, 0
FROM leases AS l CROSS JOIN jobs AS j ON j.id = l.job
WHERE l.job < ?1 ORDER BY l.job DESC LIMIT ?2;

-- name: scan_waits
-- The newest blocked jobs.
SELECT job, shape, 0 FROM waits WHERE job < ?1 ORDER BY job DESC LIMIT ?2;

-- name: scan_due
-- The newest jobs that back off, by the partial index.
SELECT job, shape, 0 FROM due INDEXED BY due_retrying
WHERE job < ?1 AND state = {state.retrying} ORDER BY job DESC LIMIT ?2;

-- name: scan_bad
-- The newest jobs that ended badly, by the partial index.
SELECT o.job, j.shape, o.state
FROM outcomes AS o INDEXED BY outcomes_bad CROSS JOIN jobs AS j ON j.id = o.job
WHERE o.state > {state.completed} AND o.job < ?1 ORDER BY o.job DESC LIMIT ?2;

-- name: scan_workflow
-- The newest jobs of one workflow, by the partial index.
SELECT j.id, j.shape, ifnull(o.state, 0)
FROM jobs AS j LEFT JOIN outcomes AS o ON o.job = j.id
WHERE j.workflow = ?3 AND j.workflow > 0 AND j.id < ?1 ORDER BY j.id DESC LIMIT ?2;

-- name: light_jobs
-- What a list needs to know of a job before it is read.
SELECT j.id, j.shape, ifnull(o.state, 0)
FROM carray(?) AS wanted
CROSS JOIN jobs AS j ON j.id = wanted.value
LEFT JOIN outcomes AS o ON o.job = j.id;

-- name: queued_jobs
-- All of them up to a bound, which is how a list finds out whether they are few.
SELECT job FROM ready
UNION ALL SELECT job FROM parked
UNION ALL SELECT job FROM due WHERE state = {state.queued}
LIMIT ?;

-- name: job_records
-- The columns of JobRecord, as in `all_jobs`.
SELECT
    j.id, j.shape, j.workflow, ifnull(o.state, 0), ifnull(o.flags, j.flags), j.rank, j.base,
    j.adjustment, j.age_from, j.created_at, j.limit_id, j.timeout_ms, j.idle_ms,
    j.supersedes, j.superseded_by, ifnull(o.attempt, j.attempt), ifnull(o.failed, j.failed),
    ifnull(o.lost, j.lost), j.returned, ifnull(o.worker, 0), ifnull(o.incarnation, 0),
    j.excluded,
    ifnull(o.assigned_at, 0), ifnull(o.started_at, 0), ifnull(o.finished_at, 0),
    ifnull(o.failure, 0), o.exit_code, o.message, o.reason, o.result, j.spec
FROM carray(?) AS wanted
CROSS JOIN jobs AS j ON j.id = wanted.value
LEFT JOIN outcomes AS o ON o.job = j.id;

-- name: standings
-- Blocked, planned and backing-off jobs; the other open ones are queued or leased.
SELECT w.job, {state.blocked}, w.not_before
FROM carray(?1) AS wanted CROSS JOIN waits AS w ON w.job = wanted.value
UNION ALL
SELECT d.job, d.state, d.at FROM carray(?2) AS wanted CROSS JOIN due AS d ON d.job = wanted.value;

-- name: worker_names
-- By primary key.
SELECT w.id, w.name FROM carray(?) AS wanted CROSS JOIN workers AS w ON w.id = wanted.value;

-- name: lease_counts
-- Along the index on the worker.
SELECT worker, count(*) FROM leases GROUP BY worker;


-- retention -------------------------------------------------------------------------

-- name: jobs_behind
-- A bounded walk from an id: ids rise with time.
SELECT j.id, j.shape, j.workflow, j.created_at, ifnull(o.state, 0), ifnull(o.finished_at, 0)
FROM jobs AS j LEFT JOIN outcomes AS o ON o.job = j.id
WHERE j.id > ?1 ORDER BY j.id LIMIT ?2;

-- name: remove_jobs
-- The row itself.
DELETE FROM jobs WHERE id IN carray(?);

-- name: remove_outcomes
-- How the job ended.
DELETE FROM outcomes WHERE job IN carray(?);

-- name: remove_attempts
-- Its earlier attempts.
DELETE FROM attempts WHERE job IN carray(?);

-- name: remove_dependents
-- Who waited for it.
DELETE FROM dependents WHERE job IN carray(?);

-- name: remove_keys
-- Its key may be used anew.
DELETE FROM keys WHERE job IN carray(?);

-- name: remove_logs
-- The segments become orphans.
DELETE FROM logs WHERE job IN carray(?);

-- name: remove_artifacts
-- Blobs that nothing else speaks of become orphans.
DELETE FROM artifacts WHERE job IN carray(?);

-- name: remove_progress
-- What it last said.
DELETE FROM progress WHERE job IN carray(?);

-- name: remove_dynamic
-- What its arguments were resolved to.
DELETE FROM dynamic WHERE job IN carray(?);

-- name: remove_workflows
-- Those without a job; the index on the workflow tells.
DELETE FROM workflows WHERE id IN carray(?) AND NOT EXISTS (
    SELECT 1 FROM jobs AS j WHERE j.workflow = workflows.id AND j.workflow > 0
) RETURNING id;

-- name: baseline
-- By primary key.
SELECT b.kind, b.id, b.body
FROM carray(?2) AS wanted CROSS JOIN baseline AS b ON b.kind = ?1 AND b.id = wanted.value;

-- name: put_baseline
-- The columns of BaselineRow.
INSERT OR REPLACE INTO baseline (kind, id, body) VALUES (?, ?, ?);

-- name: drop_baseline
-- By primary key.
DELETE FROM baseline WHERE kind = ?1 AND id IN carray(?2);

-- name: all_baseline
-- By kind and id.
SELECT kind, id, body FROM baseline ORDER BY kind, id;

-- name: trim_events
-- The newest stays, whatever its number: the numbering goes on from it.
DELETE FROM events WHERE seq <= ? AND seq < (SELECT max(seq) FROM events);

-- name: oldest_event
-- Its number is above 1 once events were removed.
SELECT seq, at FROM events ORDER BY seq LIMIT 1;
