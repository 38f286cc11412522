-- Writes the keys of submissions, each with the ids of its jobs. Fails with WL001 if another
-- transaction takes one of the keys at this moment.
CREATE OR REPLACE FUNCTION take_submission_keys(
    ids bigint[], key_spaces text[], key_names text[], key_digests text[], key_firsts integer[],
    key_counts integer[]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    taken integer;
BEGIN
    INSERT INTO keys (namespace, key, job, digest, spans)
    SELECT u.namespace, u.key, ids[u.first], u.digest, (
        SELECT '[' || string_agg(format('[%s,%s]', s.low, s.high), ',' ORDER BY s.low) || ']'
        FROM (SELECT min(i.id) AS low, max(i.id) AS high
              FROM (SELECT o.id, o.id - row_number() OVER (ORDER BY o.id) AS island
                    FROM unnest(ids[u.first : u.first + u.count - 1]) AS o (id)) AS i
              GROUP BY i.island) AS s)
    FROM unnest(key_spaces, key_names, key_digests, key_firsts, key_counts)
         AS u (namespace, key, digest, first, count)
    ORDER BY u.namespace COLLATE "C", u.key COLLATE "C"
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS taken = ROW_COUNT;
    IF taken < cardinality(key_names) THEN
        RAISE EXCEPTION 'a key was taken at this moment' USING ERRCODE = 'WL001';
    END IF;
END $$;
