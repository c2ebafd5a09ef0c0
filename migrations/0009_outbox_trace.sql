-- Which request asked for a mail: the W3C traceparent of its span, so that the delivery's trace can name it. It is telemetry, not evidence.
ALTER TABLE vatproof.outbox ADD COLUMN traceparent text CHECK (traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$');
COMMENT ON COLUMN vatproof.outbox.traceparent IS 'The span that asked for the mail, as W3C Trace Context writes it; null where there was none.';
