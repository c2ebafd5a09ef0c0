/** Helpers for tests of the audit API: an auditor, the service's signing key, a checkpoint that covers the appended events. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DateTime, Effect, Layer, Redacted, Result, Schedule } from "effect"
import { HttpClient } from "effect/http"
import { Auditors } from "#domain/audit/Auditors.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as Checkpoint from "#events/log/merkle/Checkpoint.ts"
import * as AuditorTokens from "#events/audit/PgAuditors.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { log, logName, secretOf } from "#test/support/log/Keys.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { ServiceClient } from "#test/support/ServiceClient.ts"

export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "vatproof-audit-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** Settings of a signing service, with its own folder for its record of checkpoints. */
export const signing = (dataDir: string) => ({ NOTARY_KEY: Redacted.value(secretOf(logName)), DATA_DIR: dataDir })

/** Provides a service that signs its log, with its database, sandbox and mail server. */
export const layerSigned = (settings: RunningService.Settings = {}) =>
  Layer.effect(
    RunningService.RunningService,
    Effect.flatMap(temporaryFolder, (folder) => RunningService.start({ ...signing(folder), ...settings }))
  ).pipe(Layer.provideMerge(RunningService.layerGround))

const auditors = AuditorTokens.layer.pipe(Layer.provide(EventStore.layer), Layer.provide(NodeCrypto.layer))

/** Adds an auditor. Returns the token and the header that carries it. */
export const newAuditor = (accountId: string | null = null, forDays = 30) =>
  Effect.gen(function* () {
    const { add } = yield* Auditors
    const expiresAt = DateTime.add(yield* DateTime.now, { days: forDays })
    const { auditorId, token } = yield* add({ name: "Test", accountId, expiresAt })
    const secret = Redacted.value(token)
    return { auditorId, token: secret, headers: { authorization: `Bearer ${secret}` } }
  }).pipe(Effect.provide(auditors, { local: true }))

/** Waits until the newest checkpoint of a service covers `size` events, and returns it. */
export const checkpointOf = (service: ServiceClient, size: number) =>
  service.get("/v1/audit/checkpoint").pipe(
    Effect.map(({ status, text }) =>
      status === 200 ? Result.getOrThrow(Checkpoint.open(NodeCrypto.pureCrypto, text, log)) : { size: -1, root: new Uint8Array() }
    ),
    Effect.repeat({ until: (checkpoint) => checkpoint.size >= size, schedule: Schedule.spaced("50 millis") }),
    Effect.timeout("15 seconds")
  )

/** Returns the hashes of the tile at a path. */
export const tileOf = Effect.fnUntraced(function* (service: ServiceClient, path: string) {
  const response = yield* HttpClient.get(`${service.baseUrl}/v1/audit/tile/${path}`)
  return new Uint8Array(yield* response.arrayBuffer)
})
