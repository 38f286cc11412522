-- Raises if lists and objects of a valid JSON text are too deep inside one another: the servers,
-- which read it after the commit, would refuse it. Brackets are counted with those inside texts
-- first, as that is quick; only if they are too deep then, without those inside texts.
CREATE OR REPLACE FUNCTION check_json_depth(request text) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    seen text := request;
    brackets text;
BEGIN
    FOR look IN 1..2 LOOP
        brackets := translate(regexp_replace(seen, '[^][{}]+', '', 'g'), '{}', '[]');
        FOR level IN 1..{json.max_depth} LOOP
            brackets := replace(brackets, '[]', ''); -- takes the innermost away
            EXIT WHEN brackets = '';
        END LOOP;
        IF brackets = '' THEN
            RETURN;
        END IF;
        seen := regexp_replace(request, '"(\\.|[^"\\])*"', '', 'g');
    END LOOP;
    RAISE EXCEPTION USING ERRCODE = 'WL002', MESSAGE =
        'expected the submission to have at most {json.max_depth} lists and objects inside one '
        'another, got more';
END $$;
REVOKE ALL ON FUNCTION check_json_depth(text) FROM PUBLIC;
