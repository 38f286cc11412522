-- Workflows with keys, priorities and a description, and those that have not ended.

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
CREATE INDEX workflows_unfinished ON workflows (id) WHERE state < 4;

CREATE INDEX workflow_keys_workflow ON workflow_keys (workflow);
