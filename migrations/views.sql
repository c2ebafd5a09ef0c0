-- The views for auditors. Members of the role vatproof_auditor may read the views of the schema audit and nothing else. An administrator creates
-- the login of an auditor:
--   CREATE ROLE <name> LOGIN PASSWORD '<password>' IN ROLE vatproof_auditor;

-- The content of the views comes from the events. The table event_index only finds the events: each view compares a row of this table with its
-- event and omits a wrong row.
CREATE OR REPLACE VIEW vatproof.event_index_segments AS
  SELECT l.log_id, s.segment FROM vatproof.logs l CROSS JOIN LATERAL generate_series(0, (l.next_position >> 18)::int) AS s(segment);
COMMENT ON VIEW vatproof.event_index_segments IS 'The segments of event_index. Each segment has 2^18 positions.';

CREATE OR REPLACE VIEW vatproof.issued_keys AS
  SELECT (d.data ->> 'key_id')::uuid AS key_id, (d.data ->> 'account_id')::uuid AS account_id
  FROM vatproof.event_index p
  JOIN vatproof.events e ON e.log_id = p.log_id AND e.position = p.position
  CROSS JOIN LATERAL (SELECT vatproof.json_of(e.data) AS data) d
  WHERE e.type IN ('ApiKeyClaimed', 'ApiKeyIssued') AND p.type = e.type AND p.account_id = (d.data ->> 'account_id')::uuid
    AND NOT EXISTS (SELECT FROM vatproof.event_index q JOIN vatproof.events r ON r.log_id = q.log_id AND r.position = q.position
      WHERE q.log_id = p.log_id AND q.key_id = p.key_id AND q.type = 'ApiKeyReleased' AND q.position > p.position AND r.type = q.type);
COMMENT ON VIEW vatproof.issued_keys IS 'The account of each API key, from the last event that issued the key to an account or let an account claim it.';

CREATE OR REPLACE VIEW audit.events AS
  SELECT log_id, position, stream_id, version, event_id, type, schema_version, occurred_at, recorded_at, correlation_id, causation_id,
    encode(trace_id, 'hex') AS trace_id, meter_id, units, data, metadata,
    encode(sha256(convert_to(data, 'UTF8')), 'hex') AS data_sha256, encode(sha256(convert_to(metadata, 'UTF8')), 'hex') AS metadata_sha256
  FROM vatproof.events;
COMMENT ON VIEW audit.events IS 'Every event once, in the order of storage. A gap between positions means that an event was removed.';
COMMENT ON COLUMN audit.events.log_id IS 'The log; always 0.';
COMMENT ON COLUMN audit.events.position IS 'Number of the event, without gaps from 0 in the order of storage; also the index of its leaf in the signed Merkle tree.';
COMMENT ON COLUMN audit.events.stream_id IS 'Subject of the event: account-, key-, receipt- or auditor- with an id; source- with a name; anonymous- with a keyed hash of an address; logins- with an account id or a keyed hash, or logins alone; personal-data for erasures and holds; log for the log itself.';
COMMENT ON COLUMN audit.events.version IS 'Number of the event within its stream, without gaps from 1.';
COMMENT ON COLUMN audit.events.event_id IS 'A UUIDv7 that the service generates, or a UUIDv8 computed from the operation.';
COMMENT ON COLUMN audit.events.type IS 'Type of the event, e.g. VatIdVerified, ReceiptIssued, ApiKeyRevoked.';
COMMENT ON COLUMN audit.events.schema_version IS 'Version of the schema of data for this type.';
COMMENT ON COLUMN audit.events.occurred_at IS 'Time of the event by the clock of the service.';
COMMENT ON COLUMN audit.events.recorded_at IS 'Time of storage by the clock of the database. Never decreases with the position.';
COMMENT ON COLUMN audit.events.correlation_id IS 'Id of the request that caused the event; all zeros without a request.';
COMMENT ON COLUMN audit.events.causation_id IS 'Id of the task that the event closes; null if it closes none.';
COMMENT ON COLUMN audit.events.trace_id IS 'Trace id of the request, 32 hexadecimal digits; null without a trace.';
COMMENT ON COLUMN audit.events.meter_id IS 'Meter that the event charges: a key and its month (UTC), or an anonymous address as a keyed hash.';
COMMENT ON COLUMN audit.events.units IS 'Charged units.';
COMMENT ON COLUMN audit.events.data IS 'Content of the event as canonical JSON (RFC 8785): exactly the bytes that were hashed. Read it with data::jsonb.';
COMMENT ON COLUMN audit.events.metadata IS 'Cause of the event as canonical JSON: the request id that the caller received, and except for validations and confirmations also the source (api, cli or replica), and the actor and reason of a command.';
COMMENT ON COLUMN audit.events.data_sha256 IS 'SHA-256 of data, as in the leaf of the signed tree.';
COMMENT ON COLUMN audit.events.metadata_sha256 IS 'SHA-256 of metadata, as in the leaf of the signed tree.';

CREATE OR REPLACE VIEW audit.personal_documents AS
  SELECT log_id, position, document, encode(sha256(convert_to(document, 'UTF8')), 'hex') AS document_sha256, retain_until, is_held, changed_by
  FROM vatproof.personal_documents;
COMMENT ON VIEW audit.personal_documents IS 'Names, addresses, company data, references of callers, and exact exchanges with sources. They are separate from their events, which have the SHA-256 of the document (personal_sha256).';
COMMENT ON COLUMN audit.personal_documents.log_id IS 'The log; always 0.';
COMMENT ON COLUMN audit.personal_documents.position IS 'Position of the document''s event in audit.events.';
COMMENT ON COLUMN audit.personal_documents.document IS 'Canonical JSON (RFC 8785) with a random salt: exactly the bytes that were hashed. Null after the erasure.';
COMMENT ON COLUMN audit.personal_documents.document_sha256 IS 'SHA-256 of document. It must equal personal_sha256 in the data of the event.';
COMMENT ON COLUMN audit.personal_documents.retain_until IS 'End of the retention period.';
COMMENT ON COLUMN audit.personal_documents.is_held IS 'Whether a legal hold prevents the erasure.';
COMMENT ON COLUMN audit.personal_documents.changed_by IS 'Position of the last event that erased the document, set a legal hold on it or lifted the hold; null without one.';

CREATE OR REPLACE VIEW audit.receipts AS
  SELECT e.position, e.recorded_at, (d.data #>> '{receipt,receipt_id}') COLLATE "C" AS receipt_id, (d.data ->> 'account_id')::uuid AS account_id,
    (d.data ->> 'key_id')::uuid AS key_id, (d.data #>> '{receipt,target_vat_id}') COLLATE "C" AS target_vat_id,
    d.data #>> '{receipt,requester_vat_id}' AS requester_vat_id,
    f.facts #>> '{input,company_name}' AS company_name, f.facts #>> '{input,company_street}' AS company_street,
    f.facts #>> '{input,company_zip}' AS company_zip, f.facts #>> '{input,company_city}' AS company_city,
    (d.data #>> '{receipt,result,valid}')::boolean AS valid,
    d.data #>> '{receipt,result,name_match}' AS name_match, d.data #>> '{receipt,result,street_match}' AS street_match,
    d.data #>> '{receipt,result,zip_match}' AS zip_match, d.data #>> '{receipt,result,city_match}' AS city_match,
    f.facts ->> 'official_name' AS official_name, f.facts ->> 'official_address' AS official_address,
    d.data #>> '{receipt,bzst_request_id}' AS bzst_request_id, (d.data #>> '{receipt,issued_at}')::timestamptz AS issued_at,
    d.data #>> '{receipt,source}' AS source,
    d.data #>> '{answer,code}' AS bzst_status, (d.data #>> '{answer,answered_at}')::timestamptz AS bzst_answered_at,
    f.facts #>> '{evidence,request}' AS bzst_request, f.facts #>> '{evidence,response}' AS bzst_response,
    f.facts #>> '{evidence,response_sha256}' AS bzst_response_sha256, (f.facts #>> '{evidence,http_status}')::int AS bzst_http_status,
    CASE WHEN f.facts IS NOT NULL THEN 'kept' WHEN d.data ->> 'personal_sha256' IS NULL THEN NULL
      WHEN pd.position IS NOT NULL AND pd.document IS NULL THEN 'erased' ELSE 'altered' END AS personal_data,
    f.facts ->> 'reference' AS reference
  FROM vatproof.event_index p
  JOIN vatproof.event_index_segments s ON s.log_id = p.log_id AND s.segment = (p.position >> 18)::int
  JOIN vatproof.events e ON e.log_id = p.log_id AND e.position = p.position
  LEFT JOIN vatproof.personal_documents pd ON pd.log_id = e.log_id AND pd.position = e.position
  CROSS JOIN LATERAL (SELECT vatproof.json_of(e.data) AS data) d
  CROSS JOIN LATERAL (SELECT CASE WHEN encode(sha256(convert_to(pd.document, 'UTF8')), 'hex') = d.data ->> 'personal_sha256'
    THEN vatproof.json_of(pd.document) END AS facts) f
  WHERE e.type = 'ReceiptIssued' AND p.type = 'ReceiptIssued' AND p.receipt_id = (d.data #>> '{receipt,receipt_id}') COLLATE "C"
    AND p.vat_id = (d.data #>> '{receipt,target_vat_id}') COLLATE "C" AND p.account_id = (d.data ->> 'account_id')::uuid;
COMMENT ON VIEW audit.receipts IS 'Qualified confirmations (§ 18e UStG), each with the exact exchange with the Bundeszentralamt für Steuern, unless it was erased. New events appear some seconds later than in audit.events.';
COMMENT ON COLUMN audit.receipts.position IS 'Position of the receipt''s event in audit.events.';
COMMENT ON COLUMN audit.receipts.recorded_at IS 'Time of storage by the clock of the database.';
COMMENT ON COLUMN audit.receipts.receipt_id IS 'Id of the receipt in the API.';
COMMENT ON COLUMN audit.receipts.account_id IS 'Account that the receipt was issued to.';
COMMENT ON COLUMN audit.receipts.key_id IS 'API key that the receipt was issued to.';
COMMENT ON COLUMN audit.receipts.target_vat_id IS 'VAT ID that was validated.';
COMMENT ON COLUMN audit.receipts.requester_vat_id IS 'German VAT ID of the requester.';
COMMENT ON COLUMN audit.receipts.company_name IS 'Value supplied for comparison; empty if not supplied.';
COMMENT ON COLUMN audit.receipts.company_street IS 'Value supplied for comparison; empty if not supplied.';
COMMENT ON COLUMN audit.receipts.company_zip IS 'Value supplied for comparison; empty if not supplied.';
COMMENT ON COLUMN audit.receipts.company_city IS 'Value supplied for comparison; empty if not supplied.';
COMMENT ON COLUMN audit.receipts.valid IS 'Whether the VAT ID was valid at the time of the answer.';
COMMENT ON COLUMN audit.receipts.name_match IS 'Result of the comparison: match, mismatch, not_queried (no value was supplied) or not_provided (the authority gave no result).';
COMMENT ON COLUMN audit.receipts.street_match IS 'Same values as name_match.';
COMMENT ON COLUMN audit.receipts.zip_match IS 'Same values as name_match.';
COMMENT ON COLUMN audit.receipts.city_match IS 'Same values as name_match.';
COMMENT ON COLUMN audit.receipts.official_name IS 'The registered name, if a source disclosed it; otherwise empty.';
COMMENT ON COLUMN audit.receipts.official_address IS 'The registered address, if a source disclosed it; otherwise empty.';
COMMENT ON COLUMN audit.receipts.bzst_request_id IS 'Request id of the authority.';
COMMENT ON COLUMN audit.receipts.issued_at IS 'Time of issue.';
COMMENT ON COLUMN audit.receipts.source IS 'Issuer: this service, not the authority.';
COMMENT ON COLUMN audit.receipts.bzst_status IS 'The authority''s status, e.g. evatr-0000.';
COMMENT ON COLUMN audit.receipts.bzst_answered_at IS 'Time of the answer by the authority''s clock.';
COMMENT ON COLUMN audit.receipts.bzst_request IS 'Request as sent.';
COMMENT ON COLUMN audit.receipts.bzst_response IS 'Response as received, byte for byte (UTF-8).';
COMMENT ON COLUMN audit.receipts.bzst_response_sha256 IS 'SHA-256 of the bytes of the response.';
COMMENT ON COLUMN audit.receipts.bzst_http_status IS 'HTTP status of the response.';
COMMENT ON COLUMN audit.receipts.personal_data IS 'kept, erased, or altered (the document does not have the SHA-256 in the event). Unless it is kept, company data, official name and address, reference and exchange are null.';
COMMENT ON COLUMN audit.receipts.reference IS 'The caller''s reference, such as an invoice number; null if not supplied.';

CREATE OR REPLACE VIEW audit.verifications AS
  SELECT e.position, e.recorded_at, e.occurred_at, e.stream_id, k.account_id, (d.data ->> 'vat_id') COLLATE "C" AS vat_id,
    CASE WHEN e.type = 'VatIdVerified' THEN 'answered' ELSE 'unavailable' END AS outcome,
    (d.data ->> 'valid')::boolean AS valid, d.data ->> 'source' AS source, d.data ->> 'served' AS served,
    (d.data ->> 'answered_at')::timestamptz AS answered_at, (d.data ->> 'answer_position')::bigint AS answer_position,
    (d.data ->> 'force_live')::boolean AS force_live, d.data ->> 'requester_vat_id' AS requester_vat_id,
    e.meter_id, e.units, d.data -> 'answer' AS answer, d.data -> 'attempts' AS attempts,
    f.facts ->> 'company_name' AS company_name, f.facts ->> 'company_address' AS company_address,
    f.facts #>> '{evidence,request}' AS source_request, f.facts #>> '{evidence,response}' AS source_response,
    f.facts #>> '{evidence,response_sha256}' AS source_response_sha256, (f.facts #>> '{evidence,http_status}')::int AS source_http_status,
    CASE WHEN f.facts IS NOT NULL THEN 'kept' WHEN d.data ->> 'personal_sha256' IS NULL THEN NULL
      WHEN pd.position IS NOT NULL AND pd.document IS NULL THEN 'erased' ELSE 'altered' END AS personal_data,
    f.facts ->> 'reference' AS reference
  FROM vatproof.event_index p
  JOIN vatproof.event_index_segments s ON s.log_id = p.log_id AND s.segment = (p.position >> 18)::int
  JOIN vatproof.events e ON e.log_id = p.log_id AND e.position = p.position
  LEFT JOIN vatproof.issued_keys k ON e.stream_id = 'key-' || k.key_id::text
  LEFT JOIN vatproof.personal_documents pd ON pd.log_id = e.log_id AND pd.position = e.position
  CROSS JOIN LATERAL (SELECT vatproof.json_of(e.data) AS data) d
  CROSS JOIN LATERAL (SELECT CASE WHEN encode(sha256(convert_to(pd.document, 'UTF8')), 'hex') = d.data ->> 'personal_sha256'
    THEN vatproof.json_of(pd.document) END AS facts) f
  WHERE e.type IN ('VatIdVerified', 'VatIdVerificationFailed') AND p.type = e.type AND p.vat_id = (d.data ->> 'vat_id') COLLATE "C";
COMMENT ON VIEW audit.verifications IS 'Validations without confirmation: the answer and its source, or the fact that no source could answer. New events appear some seconds later than in audit.events.';
COMMENT ON COLUMN audit.verifications.position IS 'Position of the validation''s event in audit.events.';
COMMENT ON COLUMN audit.verifications.recorded_at IS 'Time of storage by the clock of the database.';
COMMENT ON COLUMN audit.verifications.occurred_at IS 'Time of the event by the clock of the service.';
COMMENT ON COLUMN audit.verifications.stream_id IS 'Caller: key-<id>, or anonymous-<keyed hash of the address>.';
COMMENT ON COLUMN audit.verifications.account_id IS 'The account that the key has now; null for anonymous calls.';
COMMENT ON COLUMN audit.verifications.vat_id IS 'VAT ID that was validated.';
COMMENT ON COLUMN audit.verifications.outcome IS 'answered; or unavailable, which says nothing about the VAT ID.';
COMMENT ON COLUMN audit.verifications.valid IS 'The verdict of the source; null if unavailable.';
COMMENT ON COLUMN audit.verifications.source IS 'Source of the answer: vies or bzst.';
COMMENT ON COLUMN audit.verifications.served IS 'live (a new answer of the source), cache (a repeated answer that was still fresh) or stale (a repeated older answer, because no source could answer).';
COMMENT ON COLUMN audit.verifications.answered_at IS 'Time of the answer by the clock of the source.';
COMMENT ON COLUMN audit.verifications.answer_position IS 'For cache and stale: the position of the event that has the answer.';
COMMENT ON COLUMN audit.verifications.force_live IS 'Whether the caller demanded a new answer of a source (force_live).';
COMMENT ON COLUMN audit.verifications.requester_vat_id IS 'VAT ID of the requester, if supplied.';
COMMENT ON COLUMN audit.verifications.meter_id IS 'Meter that the event charges.';
COMMENT ON COLUMN audit.verifications.units IS 'Charged units.';
COMMENT ON COLUMN audit.verifications.answer IS 'The answer of the source without names and exchange; null unless served is live.';
COMMENT ON COLUMN audit.verifications.attempts IS 'Calls to sources: source, outcome, code, time and duration.';
COMMENT ON COLUMN audit.verifications.company_name IS 'The registered name, if the source disclosed it.';
COMMENT ON COLUMN audit.verifications.company_address IS 'The registered address, if the source disclosed it.';
COMMENT ON COLUMN audit.verifications.source_request IS 'Request as sent.';
COMMENT ON COLUMN audit.verifications.source_response IS 'Response as received, byte for byte (UTF-8).';
COMMENT ON COLUMN audit.verifications.source_response_sha256 IS 'SHA-256 of the bytes of the response.';
COMMENT ON COLUMN audit.verifications.source_http_status IS 'HTTP status of the response.';
COMMENT ON COLUMN audit.verifications.personal_data IS 'kept, erased or altered, as in audit.receipts; null for an event without a personal document.';
COMMENT ON COLUMN audit.verifications.reference IS 'The caller''s reference, such as an invoice number; null if not supplied.';

CREATE OR REPLACE VIEW audit.key_revocations AS
  SELECT e.position, e.recorded_at, e.occurred_at, (d.data ->> 'account_id')::uuid AS account_id, (d.data ->> 'key_id')::uuid AS key_id, d.data ->> 'prefix' AS prefix,
    d.data ->> 'by' AS revoked_by, vatproof.json_of(e.metadata) ->> 'actor' AS actor, vatproof.json_of(e.metadata) ->> 'reason' AS reason
  FROM vatproof.event_index p
  JOIN vatproof.events e ON e.log_id = p.log_id AND e.position = p.position
  CROSS JOIN LATERAL (SELECT vatproof.json_of(e.data) AS data) d
  WHERE e.type = 'ApiKeyRevoked' AND p.type = 'ApiKeyRevoked';
COMMENT ON VIEW audit.key_revocations IS 'Revoked API keys. New events appear some seconds later than in audit.events.';
COMMENT ON COLUMN audit.key_revocations.position IS 'Position of the revocation''s event in audit.events.';
COMMENT ON COLUMN audit.key_revocations.recorded_at IS 'Time of storage by the clock of the database.';
COMMENT ON COLUMN audit.key_revocations.occurred_at IS 'Time of the event by the clock of the service.';
COMMENT ON COLUMN audit.key_revocations.account_id IS 'The account of the key.';
COMMENT ON COLUMN audit.key_revocations.key_id IS 'Id of the key. Its validations are in the stream key-<key_id>.';
COMMENT ON COLUMN audit.key_revocations.prefix IS 'First 12 characters of the key: its public id.';
COMMENT ON COLUMN audit.key_revocations.revoked_by IS 'Who revoked the key: owner (of the account), operator (of the service) or key (a client with the key itself).';
COMMENT ON COLUMN audit.key_revocations.actor IS 'Name that the operator gave with --by; null if the owner or the key revoked it.';
COMMENT ON COLUMN audit.key_revocations.reason IS 'Reason that the operator gave with --reason; null if the owner or the key revoked it.';
