/** The error for a database that is unreachable, overloaded or too slow. The client may retry. */
import { Schema } from "effect"

export class StoreUnavailable extends Schema.TaggedError<StoreUnavailable>()("StoreUnavailable", {
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message() {
    return "The service's database is unavailable at the moment"
  }
}
