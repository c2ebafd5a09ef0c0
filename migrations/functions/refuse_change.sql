-- Rejects every change of an event.
CREATE OR REPLACE FUNCTION vatproof.refuse_change() RETURNS trigger LANGUAGE plpgsql SET search_path = vatproof, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'vatproof.events is append-only: % is refused', TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;

-- Rejects every change of a tile or checkpoint, except appending to a tile.
CREATE OR REPLACE FUNCTION vatproof.refuse_rewrite() RETURNS trigger LANGUAGE plpgsql SET search_path = vatproof, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND TG_TABLE_NAME = 'tiles' THEN
    IF OLD.log_id = NEW.log_id AND OLD.level = NEW.level AND OLD.index = NEW.index
      AND substr(NEW.hashes, 1, octet_length(OLD.hashes)) = OLD.hashes THEN RETURN NEW; END IF;
  END IF;
  RAISE EXCEPTION 'vatproof.% is append-only: % is refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;
