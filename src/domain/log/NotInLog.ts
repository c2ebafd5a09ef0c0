import { Schema } from "effect"

/** The item does not exist, or the reader is not allowed to see it. Readers are not told which. */
export class NotInLog extends Schema.TaggedError<NotInLog>()("NotInLog", { missing: Schema.String }) {
  override get message() {
    return `There is no ${this.missing}`
  }
}
