/** An event as the log stores it, for tests without a database. */
import { StoredEvent } from "#events/log/store/StoredEvent.ts"

/** Returns the event at position 7 of the log, with the given columns. */
export const storedEvent = (columns: Partial<ConstructorParameters<typeof StoredEvent>[0]> & { readonly type: string }) =>
  new StoredEvent({
    log_id: 0,
    position: 7,
    stream_id: "key-a",
    version: 1,
    event_id: "01a2072c-84e1-736d-b4f8-7231335ed2e9",
    schema_version: 1,
    occurred_at: "2026-11-23T06:51:27.841000Z",
    recorded_at: "2026-11-23T06:51:27.848917Z",
    correlation_id: "01a2072c-84b8-703f-b3ca-c332d4df04f2",
    causation_id: null,
    trace_id: null,
    meter_id: null,
    units: 1,
    data: "{}",
    metadata: "{}",
    ...columns
  })
