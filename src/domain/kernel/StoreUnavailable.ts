/** The database cannot be reached, or refuses work, right now. Nothing was decided and nothing may be assumed. */
import { Schema } from "effect"

export class StoreUnavailable extends Schema.TaggedError<StoreUnavailable>()("StoreUnavailable", {
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message() {
    return "The service's database cannot do this right now"
  }
}
