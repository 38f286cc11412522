CREATE SEQUENCE pool_ids;
CREATE SEQUENCE pool_worker_ids;

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
    worker bigint NOT NULL,
    last_lease bigint NOT NULL,
    requested_at bigint NOT NULL,
    changed_at bigint NOT NULL,
    idle_since bigint NOT NULL,
    charged_until bigint NOT NULL,
    tries integer NOT NULL,
    state smallint NOT NULL,
    spot smallint NOT NULL,
    token text NOT NULL UNIQUE,
    machine text,
    reason text
);
CREATE INDEX pool_workers_living ON pool_workers (id) WHERE state < 6;
CREATE INDEX pool_workers_gone ON pool_workers (changed_at, id) WHERE state = 6;

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
CREATE INDEX codes_expired ON codes (expires_at, digest);
