/** Verifies the proof of one event with the log's public key alone. If the caller passes the event, verifies the event too. */
import { Option, Result, Schema } from "effect"
import type { Checkpoint } from "#events/log/merkle/Checkpoint.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import type { Verifiers } from "#events/log/merkle/NoteKeys.ts"
import { carriesNoOther, parse, type Proof, verify } from "#events/log/merkle/Proof.ts"
import * as PersonalDocument from "#events/log/store/PersonalDocument.ts"
import { leafOf } from "#events/log/notary/StoredLeaf.ts"

/** The proof is invalid, or it belongs to another event; the message says why. */
export class NotProved extends Schema.TaggedError<NotProved>()("NotProved", { message: Schema.String }) {}

/**
 * Result of a verification. `leaf` is the proved envelope of the event at position `index`. `event` is the event that the caller
 * passed, or null. `personal` is the state of the event's personal document: "proved" if the document matches the digest in the
 * event; null if the event has no personal document, or the caller passed no event.
 */
export interface Proved {
  readonly index: number
  readonly checkpoint: Checkpoint
  readonly leaf: string
  readonly event: string | null
  readonly personal: "proved" | "erased" | "not given" | null
  /** The signed note of the checkpoint, which may have cosignatures. */
  readonly note: string
}

/**
 * Verifies a proof. `event` is a line of an export, the content of a receipt's file, or the field `event` in a response to GET
 * /v1/audit/proofs. If `event` is null, verifies the leaf in the proof, which has digests in place of the event's data.
 */
export const run = (
  crypto: PureCrypto,
  { event, proof, verifiers }: { readonly proof: string; readonly event: string | null; readonly verifiers: Verifiers }
): Result.Result<Proved, NotProved> =>
  Result.gen(function* () {
    const parsed = yield* Result.mapError(parse(proof), ({ message }) => refused(message))
    const { leaf, personal } = yield* event === null ? leafIn(parsed) : leafFrom(crypto, event)
    const log = { origin: verifiers[0].name, verifiers }
    const { checkpoint, index } = yield* Result.mapError(verify(crypto, proof, { ...log, leaf }), ({ message }) =>
      refused(event === null ? message : `${message}: the event was altered, or the proof belongs to another event`)
    )
    if (!carriesNoOther(parsed, leaf)) return yield* Result.fail(refused("The proof belongs to another event"))
    return { index, checkpoint, leaf, event, personal, note: parsed.checkpoint }
  })

const refused = (message: string) => new NotProved({ message })

type Claimed = Result.Result<Pick<Proved, "leaf" | "personal">, NotProved>

const leafIn = ({ extra }: Proof): Claimed =>
  Option.match(extra, {
    onNone: () => Result.fail(refused("The proof does not contain its event: add a file with the event (--event)")),
    onSome: (bytes) => Result.succeed({ leaf: new TextDecoder().decode(bytes), personal: null })
  })

const leafFrom = (crypto: PureCrypto, line: string): Claimed =>
  Result.gen(function* () {
    const read = yield* Result.mapError(EventLine.parseWhole(line.trim()), ({ message }) => refused(message))
    const leaf = yield* Result.mapError(leafOf(crypto, read.event), ({ message }) => refused(message))
    return { leaf, personal: yield* documentIn(crypto, read) }
  })

const documentIn = (crypto: PureCrypto, { data, personal }: EventLine.ReadLine): Result.Result<Proved["personal"], NotProved> => {
  const digest = Option.getOrNull(PersonalDocument.digestIn(data))
  if (digest === null)
    return personal === undefined ? Result.succeed(null) : Result.fail(refused("The event has no personal document"))
  if (personal === undefined) return Result.succeed("not given")
  const state = PersonalDocument.stateOf(crypto.sha256Hex, digest, personal)
  if (state === "erased") return Result.succeed(state)
  return state === "kept"
    ? Result.succeed("proved")
    : Result.fail(refused("The personal document does not match the digest in the event"))
}
