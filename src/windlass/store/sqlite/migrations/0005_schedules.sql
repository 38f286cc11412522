-- Templates, each version a row that never changes.
CREATE TABLE templates (
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    body BLOB NOT NULL,
    digest TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT,
    removed_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, name, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE schedules (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    cron TEXT NOT NULL,
    zone TEXT NOT NULL,
    overlap TEXT NOT NULL,
    catch_up TEXT NOT NULL,
    catch_up_limit INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    next_at INTEGER NOT NULL,
    last_slot INTEGER NOT NULL,
    body BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT,
    updated_at INTEGER NOT NULL,
    UNIQUE (namespace, name)
) STRICT;

CREATE INDEX schedules_due ON schedules (next_at) WHERE paused = 0 AND next_at > 0;

CREATE TABLE schedule_runs (
    id INTEGER PRIMARY KEY,
    schedule INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    state INTEGER NOT NULL,
    workflow INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    reason TEXT,
    actor TEXT
) STRICT;

-- At most one run for each slot; those started by hand have none.
CREATE UNIQUE INDEX schedule_runs_slot ON schedule_runs (schedule, slot) WHERE slot > 0;

CREATE INDEX schedule_runs_schedule ON schedule_runs (schedule, id);

CREATE INDEX schedule_runs_waiting ON schedule_runs (schedule) WHERE state = 1;

CREATE INDEX schedule_runs_open ON schedule_runs (schedule, state, id) WHERE state < 3;

CREATE INDEX schedule_runs_ended ON schedule_runs (changed_at) WHERE state >= 3;

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
    finished_at INTEGER NOT NULL,
    outcome INTEGER NOT NULL,
    result INTEGER NOT NULL,
    message TEXT,
    UNIQUE (workflow, run, occasion, place)
) STRICT;

CREATE INDEX reactions_due ON reactions (next_at, id) WHERE state = 1;

CREATE INDEX reactions_ended ON reactions (finished_at) WHERE state > 1;
