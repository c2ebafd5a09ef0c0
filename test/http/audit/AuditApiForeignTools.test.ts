/** Verifies the served log with Go's packages for transparency logs. Skips the test if they are not installed. */
import { beforeEach } from "@effect/vitest"
import { Effect, Layer, Redacted, Result } from "effect"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import { formatVerifier } from "#events/log/merkle/NoteKeys.ts"
import { parse } from "#events/log/merkle/SignedNote.ts"
import { leafOf } from "#events/log/notary/StoredLeaf.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { assert, layer } from "#test/support/Test.ts"
import { logName, secretOf, signer } from "#test/support/log/Keys.ts"
import { checkpointOf, layerSigned, newAuditor, tileOf } from "#test/support/Auditing.ts"
import { command } from "#test/support/CommandLine.ts"
import { askGo, base64, hasGo } from "#test/support/GoTools.ts"
import { hasOpenssl, opensslVerifies } from "#test/support/OpenSsl.ts"
import { why } from "#test/support/Operations.ts"
import * as RunningService from "#test/support/RunningService.ts"
import * as SignedLog from "#test/support/SignedLog.ts"

/** The position whose personal document is erased. */
const erased = 17

const service = Layer.provideMerge(Layer.provide(EventStore.layer, NodeCrypto.layer), layerSigned())

layer(service, { excludeTestServices: true })("The served log", (it) => {
  beforeEach((context) => context.skip(!hasGo, "left out: Go or Debian's golang-golang-x-mod-dev is not installed"))

  it.effect(
    "has the same checkpoint, tiles and proofs that Go's sumdb/tlog computes from the events",
    function* () {
      const running = yield* RunningService.RunningService
      const { headers } = yield* newAuditor()
      yield* SignedLog.appendAll(
        Array.from({ length: 596 }, (_, i) => ({
          stream: `source-${i % 9}`,
          type: "Tested",
          data: { i, vat_id: `ATU${12_345_000 + i}` },
          ...(i === erased ? { personal: { company_name: "Muster GmbH" } } : {})
        }))
      )
      // Reading the log appends its last event. Positions 0 to 599 do not change after that.
      const lines = yield* running.get("/v1/audit/events", { headers: { ...headers, accept: "application/x-ndjson" } })
      const events = lines.text
        .trimEnd()
        .split("\n")
        .map((line) => Result.getOrThrow(EventLine.parse(line)))
      yield* checkpointOf(running, events.length)
      const asked = [0, erased, 255, 256, 511, events.length - 1]
      const proofOf = Effect.fnUntraced(function* (position: number) {
        const { text } = yield* running.get(`/v1/audit/proofs/${position}`, { headers })
        const leaf = leafOf(NodeCrypto.pureCrypto, Result.getOrThrow(Result.fromNullishOr(events[position], () => position)))
        return { leaf: base64(new TextEncoder().encode(Result.getOrThrow(leaf))), text }
      })
      const proofs = yield* Effect.forEach(asked, proofOf)
      const checkpoint = (yield* running.get("/v1/audit/checkpoint")).text
      const tiles = {
        "tile/0/000": base64(yield* tileOf(running, "0/000")),
        "tile/0/001": base64(yield* tileOf(running, "0/001")),
        [`tile/0/002.p/${events.length - 512}`]: base64(yield* tileOf(running, `0/002.p/${events.length - 512}`)),
        "tile/1/000.p/2": base64(yield* tileOf(running, "1/000.p/2"))
      }
      // Older and new proofs stay valid after the erasure of a document.
      assert.match((yield* command("personal-data", "erase", `ATU${12_345_000 + erased}`, ...why)).output, /^1 personal/u)
      yield* checkpointOf(running, events.length + 1)
      const after = yield* proofOf(erased)
      const newer = Result.getOrThrow(parse((yield* running.get("/v1/audit/checkpoint")).text))
      assert.isAbove(Number(newer.text.split("\n")[1]), events.length)
      if (hasOpenssl)
        for (const { signatures, text } of [Result.getOrThrow(parse(checkpoint)), newer])
          assert.isTrue(opensslVerifies(signer.publicKey, text, signatures[0]?.bytes ?? new Uint8Array()))
      const answer = yield* askGo({
        secret: Redacted.value(secretOf(logName)),
        verifier: formatVerifier(signer),
        notes: [checkpoint],
        leaves: events.map((event) => base64(new TextEncoder().encode(Result.getOrThrow(leafOf(NodeCrypto.pureCrypto, event))))),
        sizes: [],
        tiles,
        proofs: [...proofs, after],
        origin: logName
      })
      assert.deepStrictEqual(answer.opened, [Result.getOrThrow(parse(checkpoint)).text])
      assert.deepStrictEqual(answer.signed, [checkpoint])
      assert.strictEqual(answer.read, events.length)
      assert.deepStrictEqual(answer.proved, [...asked, erased])
    },
    120_000
  )
})
