-- Tokens, enrolment codes and the audit log.

-- name: insert_token
-- The columns of Token.
INSERT INTO tokens (
    id, name, digest, role, namespaces, worker, created_at, expires_at, revoked_at, incarnation,
    last_used_at, kind, parent
) VALUES (nextval('token_ids'), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING id;

-- name: token_by_digest
-- By the unique digest, once for each request.
SELECT id, name, digest, role, namespaces, worker, created_at, expires_at, revoked_at,
       incarnation, last_used_at, kind, parent
FROM tokens WHERE digest = $1;

-- name: token_by_id
-- The token behind a session.
SELECT id, name, digest, role, namespaces, worker, created_at, expires_at, revoked_at,
       incarnation, last_used_at, kind, parent
FROM tokens WHERE id = $1;

-- name: all_tokens
-- All of them; there are few.
SELECT id, name, digest, role, namespaces, worker, created_at, expires_at, revoked_at,
       incarnation, last_used_at, kind, parent
FROM tokens ORDER BY id;

-- name: revoke_token
-- Of two concurrent calls, the second waits and then finds it done.
UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at = 0 RETURNING id;

-- name: expire_token
-- Only earlier, never later; a token that is no longer valid does not change.
UPDATE tokens SET expires_at = $2
WHERE id = $1 AND revoked_at = 0 AND (expires_at = 0 OR expires_at > $2) RETURNING id;

-- name: trim_sessions
-- The oldest first; sessions always expire.
DELETE FROM tokens WHERE id IN (
    SELECT id FROM tokens WHERE kind = 'session' AND expires_at < $1
    ORDER BY expires_at, id LIMIT $2
);

-- name: insert_code
-- The columns of Code.
INSERT INTO codes (digest, created_at, expires_at, used_at, takeover, worker, token)
VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: use_code
-- Of two concurrent calls, the second waits and then finds it used.
UPDATE codes SET used_at = $2
WHERE digest = $1 AND used_at = 0 AND expires_at > $2 AND token = 0
RETURNING digest, created_at, expires_at, used_at, takeover, worker, token;

-- name: use_link
-- The same for a code that opens a session.
UPDATE codes SET used_at = $2
WHERE digest = $1 AND used_at = 0 AND expires_at > $2 AND token > 0
RETURNING digest, created_at, expires_at, used_at, takeover, worker, token;

-- name: remove_tokens_of_worker
-- The partial index leaves out the tokens of people.
DELETE FROM tokens WHERE worker = $1 AND worker > 0;

-- name: end_sessions
-- The secret that the worker enrols with stays.
DELETE FROM tokens WHERE worker = $1 AND worker > 0 AND incarnation > 0;

-- name: trim_codes
-- The oldest first.
DELETE FROM codes WHERE digest IN (
    SELECT digest FROM codes WHERE expires_at < $1 ORDER BY expires_at, digest LIMIT $2
);

-- name: read_audit
-- The index on the time finds the start; ids and times rise nearly together.
SELECT id, at, calls, status, token, actor, role, address, action, resource, namespace, code, request,
    about
FROM audit
WHERE id > $1 AND at >= $2
    AND id >= coalesce((SELECT min(id) FROM audit WHERE at >= $2), 0)
    AND ($3::text[] IS NULL OR namespace = ANY ($3::text[]))
ORDER BY id LIMIT $4;

-- name: recent_audit
-- Back along the primary key.
SELECT id, at, calls, status, token, actor, role, address, action, resource, namespace, code, request,
    about
FROM audit WHERE id < $1 ORDER BY id DESC LIMIT $2;

-- name: trim_audit
-- The oldest first.
DELETE FROM audit WHERE id IN (
    SELECT id FROM audit WHERE at < $1 ORDER BY at, id LIMIT $2
);
