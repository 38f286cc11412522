CREATE SEQUENCE token_ids;

-- Who may do what. Only digests of secrets are kept.
CREATE TABLE tokens (
    id bigint PRIMARY KEY DEFAULT nextval('token_ids'),
    worker bigint NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    revoked_at bigint NOT NULL,
    name text NOT NULL,
    digest text COLLATE "C" NOT NULL UNIQUE,
    role text NOT NULL,
    namespaces text[] NOT NULL
);

CREATE TABLE codes (
    digest text COLLATE "C" PRIMARY KEY,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    used_at bigint NOT NULL
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
CREATE INDEX logs_streaming ON logs (job, attempt) WHERE state = 1;

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

-- Where a replay begins once the oldest events are gone.
CREATE TABLE baseline (
    id bigint NOT NULL,
    kind smallint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (kind, id)
);

-- Jobs that ended otherwise than completed, of which there are few. An index on the state in
-- `jobs` would make every end of a job a costly update.
CREATE TABLE bad_ends (
    job bigint PRIMARY KEY,
    state smallint NOT NULL
);

CREATE INDEX jobs_workflow ON jobs (workflow, id) WHERE workflow IS NOT NULL;
CREATE INDEX keys_job ON keys (job);
-- Jobs that back off; planned ones may be many.
CREATE INDEX due_retrying ON due (job) WHERE state = 7;

INSERT INTO bad_ends (job, state) SELECT id, state FROM jobs WHERE state > 8;
