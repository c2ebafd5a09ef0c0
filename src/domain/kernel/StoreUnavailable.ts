/** The database is unreachable or rejects work at the moment. Nothing was decided. */
import { Schema } from "effect"

export class StoreUnavailable extends Schema.TaggedError<StoreUnavailable>()("StoreUnavailable", {
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message() {
    return "The service's database is unavailable at the moment"
  }
}
