-- Whether the engine must resolve something in a spec before a worker gets it: a lookup or a result.
CREATE OR REPLACE FUNCTION has_references(spec bytea) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT position('"$'::bytea IN spec) > 0
       AND (position('"$lookup"'::bytea IN spec) > 0 OR position('"$result"'::bytea IN spec) > 0)
$$;
