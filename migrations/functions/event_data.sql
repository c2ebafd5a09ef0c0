-- Returns the data of an event as jsonb. Replaces U+0000, which the text of a caller may contain and jsonb cannot represent. The function is not
-- STRICT, because the planner could not inline a STRICT function and would call it for each event.
CREATE OR REPLACE FUNCTION vatproof.json_of(data text) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  -- \u0000 is an escape only if the number of backslashes before it is even.
  SELECT CASE WHEN strpos(data, '\u0000') = 0 THEN data
    ELSE regexp_replace(data, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g') END::jsonb
$$;
COMMENT ON FUNCTION vatproof.json_of IS 'Returns the data of an event as jsonb, with U+FFFD in place of U+0000, which jsonb cannot represent. The bytes that were hashed are in audit.events.';
