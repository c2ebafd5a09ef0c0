/** Changes personal documents by events. vatproof.append stores such an event and changes the documents in one transaction. */
import { Effect, Schema } from "effect"
import { personalDataStream } from "#domain/log/PersonalData.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

/** Another command changed one of the documents first, so nothing is stored. */
export class DocumentsChanged extends Schema.TaggedError<DocumentsChanged>()("DocumentsChanged", {}) {}

/** Creates a function that appends an event which changes documents. Fails with DocumentsChanged if a document changed meanwhile. */
export const makeChange = Effect.map(EventStore, (events) =>
  Effect.fnUntraced(function* (positions: ReadonlyArray<number>, event: DomainEvent) {
    if (positions.length === 0) return
    yield* events
      .appendWith([{ stream: personalDataStream, expectedVersion: null, events: [event], charge: null }], () => Effect.void)
      .pipe(
        Effect.catchTag("VersionConflict", Effect.die),
        Effect.catchTag("SqlError", (error): Effect.Effect<never, DocumentsChanged | StoreUnavailable> =>
          error.reason._tag === "SerializationError" ? Effect.fail(new DocumentsChanged({})) : QueryPolicy.refused(error)
        )
      )
  })
)
