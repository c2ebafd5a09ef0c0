-- Returns the data of an event as jsonb. Replaces U+0000, which a caller's text may contain and jsonb cannot represent. Not
-- STRICT: the planner could not inline it and would call it for each event.
CREATE OR REPLACE FUNCTION vatproof.json_of(data text) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  -- A backslash escapes only if an even number of backslashes precedes it.
  SELECT CASE WHEN strpos(data, '\u0000') = 0 THEN data
    ELSE regexp_replace(data, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g') END::jsonb
$$;
COMMENT ON FUNCTION vatproof.json_of IS 'The data of an event as jsonb. U+FFFD replaces U+0000, which jsonb cannot represent. The hashed bytes are in audit.events.';
