-- An event's data is JSON that Postgres must be able to read as jsonb wherever it looks into it. jsonb has no U+0000, which a text of a
-- caller's may have had: such an event stopped the projection that came to it, and with it every search of the log.
-- Not STRICT: the planner would have to call it for each event, instead of putting it in the place of its name.
CREATE FUNCTION vatproof.json_of(data text) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  -- An escape is one only behind an even number of backslashes.
  SELECT CASE WHEN strpos(data, '\u0000') = 0 THEN data
    ELSE regexp_replace(data, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g') END::jsonb
$$;
COMMENT ON FUNCTION vatproof.json_of IS 'The data of an event, to look into it: U+FFFD stands for U+0000, which jsonb cannot hold. The bytes that count are in audit.events.';

CREATE OR REPLACE VIEW audit.receipts AS
  SELECT e.position, e.recorded_at, p.receipt_id, p.account_id, (d.data ->> 'key_id')::uuid AS key_id, p.vat_id AS target_vat_id,
    d.data #>> '{receipt,requester_vat_id}' AS requester_vat_id,
    d.data #>> '{receipt,input,company_name}' AS company_name, d.data #>> '{receipt,input,company_street}' AS company_street,
    d.data #>> '{receipt,input,company_zip}' AS company_zip, d.data #>> '{receipt,input,company_city}' AS company_city,
    (d.data #>> '{receipt,result,valid}')::boolean AS valid,
    d.data #>> '{receipt,result,name_match}' AS name_match, d.data #>> '{receipt,result,street_match}' AS street_match,
    d.data #>> '{receipt,result,zip_match}' AS zip_match, d.data #>> '{receipt,result,city_match}' AS city_match,
    d.data #>> '{receipt,result,official_name}' AS official_name, d.data #>> '{receipt,result,official_address}' AS official_address,
    d.data #>> '{receipt,bzst_request_id}' AS bzst_request_id, (d.data #>> '{receipt,issued_at}')::timestamptz AS issued_at,
    d.data #>> '{receipt,source}' AS source,
    d.data #>> '{answer,code}' AS bzst_status, (d.data #>> '{answer,answered_at}')::timestamptz AS bzst_answered_at,
    d.data #>> '{answer,evidence,request}' AS bzst_request, d.data #>> '{answer,evidence,response}' AS bzst_response,
    d.data #>> '{answer,evidence,response_sha256}' AS bzst_response_sha256,
    (d.data #>> '{answer,evidence,http_status}')::int AS bzst_http_status
  FROM vatproof.event_places p
  JOIN vatproof.place_segments s ON s.log_id = p.log_id AND s.segment = (p.position >> 18)::int
  JOIN vatproof.events e ON e.log_id = p.log_id AND e.position = p.position
  CROSS JOIN LATERAL (SELECT vatproof.json_of(e.data) AS data) d
  WHERE p.type = 'ReceiptIssued';

CREATE OR REPLACE VIEW audit.verifications AS
  SELECT e.position, e.recorded_at, e.occurred_at, e.stream_id, k.account_id, p.vat_id,
    CASE WHEN p.type = 'VatIdVerified' THEN 'answered' ELSE 'unavailable' END AS outcome,
    (d.data ->> 'valid')::boolean AS valid, d.data ->> 'source' AS source, d.data ->> 'served' AS served,
    (d.data ->> 'answered_at')::timestamptz AS answered_at, (d.data ->> 'answer_position')::bigint AS answer_position,
    (d.data ->> 'force_live')::boolean AS force_live, d.data ->> 'requester_vat_id' AS requester_vat_id,
    e.meter_id, e.units, d.data -> 'answer' AS answer, d.data -> 'attempts' AS attempts
  FROM vatproof.event_places p
  JOIN vatproof.place_segments s ON s.log_id = p.log_id AND s.segment = (p.position >> 18)::int
  JOIN vatproof.events e ON e.log_id = p.log_id AND e.position = p.position
  LEFT JOIN vatproof.api_keys k ON e.stream_id = 'key-' || k.key_id::text
  CROSS JOIN LATERAL (SELECT vatproof.json_of(e.data) AS data) d
  WHERE p.type IN ('VatIdVerified', 'VatIdVerificationFailed');

CREATE OR REPLACE VIEW audit.key_revocations AS
  SELECT e.position, e.recorded_at, e.occurred_at, p.account_id, (d.data ->> 'key_id')::uuid AS key_id, d.data ->> 'prefix' AS prefix
  FROM vatproof.event_places p
  JOIN vatproof.events e ON e.log_id = p.log_id AND e.position = p.position
  CROSS JOIN LATERAL (SELECT vatproof.json_of(e.data) AS data) d
  WHERE p.type = 'ApiKeyRevoked';

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'vatproof_owner') AND pg_has_role(current_user, 'vatproof_owner', 'MEMBER') THEN
    BEGIN
      ALTER FUNCTION vatproof.json_of OWNER TO vatproof_owner;
    EXCEPTION WHEN insufficient_privilege THEN NULL;  -- everything belongs to the migrating role then
    END;
  END IF;
END $$;
