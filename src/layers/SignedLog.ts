/** Layers of the signed log: its tree, its keys, and the notary. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, Layer, Option } from "effect"
import { purposeIn } from "#domain/log/LogPurpose.ts"
import { formatVerifier } from "#events/log/merkle/NoteKeys.ts"
import { LogSigner, parseKeys } from "#events/log/notary/LogSigner.ts"
import * as Notary from "#events/log/notary/Notary.ts"
import * as Scrubber from "#events/audit/Scrubber.ts"
import { TreeStore } from "#events/log/notary/TreeStore.ts"
import { AppConfig } from "#infra/config/AppConfig.ts"
import * as SchemaComparison from "#infra/postgres/SchemaComparison.ts"
import * as CheckpointMirror from "#infra/security/CheckpointMirror.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import * as NotaryKeys from "#infra/security/NotaryKeys.ts"

/**
 * Fails if a configured signing key is malformed, or belongs to a log of another purpose: a live key must not sign simulated answers. The layer is built before the database layer, so that a failed start runs no migration. */
export const wellFormedKeys = Layer.effectDiscard(
  Effect.gen(function* () {
    const texts = yield* NotaryKeys.configuredKeys
    if (Option.isNone(texts)) return
    const { purpose } = yield* AppConfig
    const { signing } = yield* Effect.fromResult(parseKeys(NodeCrypto.pureCrypto, texts.value, yield* NotaryKeys.logName))
    const foreign = signing.find(({ name }) => purposeIn(name) !== purpose)
    if (foreign === undefined) return
    const message = `The key belongs to the ${purposeIn(foreign.name)} log ${foreign.name}, and this log is a ${purpose} log`
    return yield* NotaryKeys.refuse({ message })
  }).pipe(Effect.catchTag("MalformedKey", NotaryKeys.refuse))
)

/** The Merkle tree of the log and its signing keys. */
export const signedTree = Layer.unwrap(
  Effect.gen(function* () {
    const signer = LogSigner.layer({ keys: yield* NotaryKeys.findKeys, name: yield* NotaryKeys.logName })
    return Layer.catchTag(signer, "MalformedKey", (malformed) => Layer.effectContext(NotaryKeys.refuse(malformed)))
  })
).pipe(Layer.provideMerge(TreeStore.layer), Layer.provideMerge(NodeCrypto.layer))

/** Signs the log and repeatedly verifies it in the background, if a signing key is configured. */
export const notary = Layer.unwrap(
  Effect.gen(function* () {
    const { keys } = yield* LogSigner
    if (Option.isNone(keys)) {
      yield* Effect.logWarning(
        "The log is not signed, so an alteration cannot be detected: make a key with `npm run vatproof -- notary key` and set NOTARY_KEY or NOTARY_KEY_FILE"
      )
      return Layer.empty
    }
    const { name, verifiers } = keys.value
    const files = yield* NotaryKeys.checkpointFiles(keys.value)
    const signed = Effect.logInfo(`The log ${name} is signed; its public key: ${formatVerifier(verifiers[0])}`)
    const mirror = yield* CheckpointMirror.make
    const saveSeen = (note: string) => Effect.andThen(files.saveSeen(note), mirror(note))
    const notary = Layer.tap(Notary.layerOnceKnown({ loadSeen: files.loadSeen, saveSeen, keys: keys.value }), () => signed)
    // A replica of an older version finds a newer schema during a roll-out.
    const schema = Effect.map(yield* SchemaComparison.load, (found) =>
      found.filter(({ object }) => object !== SchemaComparison.migrations)
    )
    // The scrubber, which verifies the log, starts after the notary has accepted the log.
    return Scrubber.layer(Scrubber.usualPace, schema).pipe(Layer.provide(notary))
  })
).pipe(Layer.provide(NodeHttpClient.layerUndici))
