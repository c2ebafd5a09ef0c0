-- Erases personal documents, and sets and lifts legal holds, as the events at positions p_from (inclusive) to p_to (exclusive) say. The append
-- calls it in the transaction that stores these events, so an event and its change are stored together.
CREATE OR REPLACE FUNCTION vatproof.change_documents(p_log smallint, p_from bigint, p_to bigint) RETURNS void LANGUAGE plpgsql
SET search_path = vatproof, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  fact record;
  changed int;
BEGIN
  FOR fact IN
    SELECT e.position, e.type, ARRAY(SELECT jsonb_array_elements_text(json_of(e.data) -> 'positions')::bigint) AS positions FROM events e
    WHERE e.log_id = p_log AND e.position >= p_from AND e.position < p_to
      AND e.type IN ('PersonalDataErased', 'PersonalDataHeld', 'PersonalDataReleased') ORDER BY e.position
  LOOP
    UPDATE personal_documents d SET document = CASE WHEN fact.type = 'PersonalDataErased' THEN NULL ELSE d.document END,
      is_held = fact.type = 'PersonalDataHeld', changed_by = fact.position
    WHERE d.log_id = p_log AND d.position = ANY (fact.positions) AND d.document IS NOT NULL AND d.is_held = (fact.type = 'PersonalDataReleased');
    GET DIAGNOSTICS changed = ROW_COUNT;
    -- If the event lists more positions than this UPDATE has changed, a concurrent command has erased or held some of these documents first. On this
    -- error code the service reads the documents again and retries.
    IF changed <> cardinality(fact.positions) THEN
      RAISE '% cannot change a personal document: another command has erased it or changed its legal hold', fact.type USING ERRCODE = 'serialization_failure';
    END IF;
  END LOOP;
END $$;

-- Rejects a change of a personal document unless an event records this change. Rejects it even if the owner of the table makes it.
CREATE OR REPLACE FUNCTION vatproof.refuse_document_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = vatproof, pg_temp AS $$
DECLARE fact text;
BEGIN
  IF TG_OP = 'UPDATE' AND OLD.log_id = NEW.log_id AND OLD.position = NEW.position AND OLD.retain_until = NEW.retain_until
    AND NEW.changed_by > coalesce(OLD.changed_by, OLD.position) AND OLD.document IS NOT NULL THEN
    SELECT e.type INTO fact FROM events e WHERE e.log_id = NEW.log_id AND e.position = NEW.changed_by AND json_of(e.data) -> 'positions' @> to_jsonb(NEW.position);
    IF fact = 'PersonalDataErased' AND NEW.document IS NULL AND NOT OLD.is_held AND NOT NEW.is_held
      OR fact = 'PersonalDataHeld' AND NEW.document = OLD.document AND NEW.is_held
      OR fact = 'PersonalDataReleased' AND NEW.document = OLD.document AND NOT NEW.is_held THEN RETURN NEW; END IF;
  END IF;
  RAISE EXCEPTION 'vatproof.personal_documents is append-only: % is refused, because no event records this change', TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;
