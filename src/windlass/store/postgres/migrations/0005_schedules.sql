CREATE SEQUENCE schedule_ids;
CREATE SEQUENCE run_ids;
CREATE SEQUENCE reaction_ids;

-- Templates, each version a row that never changes.
CREATE TABLE templates (
    created_at bigint NOT NULL,
    removed_at bigint NOT NULL,
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
    next_at bigint NOT NULL,
    last_slot bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    catch_up_limit integer NOT NULL,
    paused smallint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    cron text NOT NULL,
    zone text NOT NULL,
    overlap text NOT NULL,
    catch_up text NOT NULL,
    created_by text,
    body bytea NOT NULL,
    UNIQUE (namespace, name)
);
CREATE INDEX schedules_due ON schedules (next_at, id) WHERE paused = 0 AND next_at > 0;

CREATE TABLE schedule_runs (
    id bigint PRIMARY KEY,
    schedule bigint NOT NULL,
    slot bigint NOT NULL,
    workflow bigint NOT NULL,
    created_at bigint NOT NULL,
    changed_at bigint NOT NULL,
    state smallint NOT NULL,
    reason text,
    actor text
);
-- At most one run for each slot; those started by hand have none.
CREATE UNIQUE INDEX schedule_runs_slot ON schedule_runs (schedule, slot) WHERE slot > 0;
CREATE INDEX schedule_runs_schedule ON schedule_runs (schedule, id);
CREATE INDEX schedule_runs_waiting ON schedule_runs (schedule) WHERE state = 1;
CREATE INDEX schedule_runs_open ON schedule_runs (schedule, state, id) WHERE state < 3;
CREATE INDEX schedule_runs_ended ON schedule_runs (changed_at, id) WHERE state >= 3;

CREATE TABLE reactions (
    id bigint PRIMARY KEY,
    workflow bigint NOT NULL,
    next_at bigint NOT NULL,
    created_at bigint NOT NULL,
    finished_at bigint NOT NULL,
    result bigint NOT NULL,
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
CREATE INDEX reactions_due ON reactions (next_at, id) WHERE state = 1;
CREATE INDEX reactions_ended ON reactions (finished_at, id) WHERE state > 1;
