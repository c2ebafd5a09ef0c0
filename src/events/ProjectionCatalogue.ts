/** Lists the projections of the service (migrations/projections.sql). */
import { either, logProjections, type TableProjection } from "#events/log/projections/TableProjection.ts"
import { logId } from "#events/log/store/AppendCommand.ts"

const newestOf = (stream: string) =>
  `(SELECT max(e.position) FROM vatproof.events e WHERE e.log_id = ${logId} AND e.stream_id = ${stream})`

export const tableProjections: ReadonlyArray<TableProjection> = [
  ...logProjections,
  {
    name: "latest",
    kind: "inline",
    version: 1,
    key: ["log_id", "key"],
    columns: ["position", "as_of", "answered_at", "answer"],
    texts: ["key", "answer"],
    position: either("position")
  },
  {
    name: "listed",
    kind: "inline",
    version: 1,
    key: ["log_id", "list", "position"],
    columns: [],
    texts: ["list"],
    position: either("position")
  },
  {
    name: "accounts",
    kind: "inline",
    version: 1,
    key: ["account_id"],
    columns: ["plan", "per_month", "verified_at", "created_at", "closed_at"],
    texts: ["plan"],
    position: newestOf(`'account-' || ${either("account_id")}`)
  },
  {
    name: "api_keys",
    kind: "inline",
    version: 1,
    key: ["key_id"],
    columns: ["account_id", "key_sha256", "prefix", "issued_at", "revoked_at", "previous_sha256", "previous_until"],
    texts: ["prefix"],
    position: newestOf(`'account-' || ${either("account_id")}`)
  },
  {
    name: "auditors",
    kind: "inline",
    version: 1,
    key: ["auditor_id"],
    columns: ["account_id", "token_sha256", "name", "added_at", "expires_at", "revoked_at"],
    texts: ["name"],
    position: newestOf(`'auditor-' || ${either("auditor_id")}`)
  },
  {
    name: "tasks",
    kind: "inline",
    version: 1,
    key: ["log_id", "task_id"],
    columns: [
      "position",
      "account_id",
      "key_id",
      "member_state",
      "vat_id",
      "reference_hash",
      "batch_id",
      "item",
      "accepted_at",
      "expires_at",
      "state",
      "closed_by",
      "closed_at"
    ],
    texts: ["member_state", "vat_id", "reference_hash", "state"],
    position: either("position")
  },
  {
    name: "batches",
    kind: "inline",
    version: 1,
    key: ["batch_id"],
    columns: [
      "position",
      "account_id",
      "key_id",
      "items",
      "malformed",
      "duplicates",
      "request_hash",
      "accepted_at",
      "expires_at",
      "cancelled_by",
      "completed_by"
    ],
    texts: ["request_hash"],
    position: either("position")
  },
  {
    name: "event_index",
    kind: "asynchronous",
    version: 1,
    key: ["log_id", "position"],
    columns: ["type", "account_id", "key_id", "vat_id", "receipt_id"],
    texts: ["type", "vat_id", "receipt_id"],
    position: either("position")
  },
  {
    name: "source_hours",
    kind: "asynchronous",
    version: 1,
    key: ["log_id", "hour", "member_state", "source", "outcome"],
    columns: ["calls", "ms_sum", "ms_max", "last_position"],
    texts: ["member_state", "source", "outcome"],
    position: either("last_position")
  }
]
