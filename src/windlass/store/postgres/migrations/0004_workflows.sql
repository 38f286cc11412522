-- Workflows with keys, priorities and a description, and those that have not ended.

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
CREATE INDEX workflows_unfinished ON workflows (id) WHERE state < 4;

-- Intents about a whole workflow count ids of jobs.
ALTER TABLE cascades ALTER COLUMN cursor TYPE bigint;
