-- Returns whether a rate window of one minute that ends at p_ends_at counts calls at p_present. A window that ends more than two minutes from now was
-- opened before the clock was set back: a new window replaces it. The planner inlines this function.
CREATE OR REPLACE FUNCTION vatproof.window_is_open(p_ends_at timestamptz, p_present timestamptz) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT p_ends_at > p_present AND p_ends_at <= p_present + interval '2 minutes'
$$;
