/** Verifies one proof, and the event it is said to prove, with nothing but the log's public key. */
import { Option, Result, Schema } from "effect"
import type { Checkpoint } from "#events/merkle/Checkpoint.ts"
import * as EventLine from "#events/store/EventLine.ts"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import type { Verifiers } from "#events/merkle/NoteKeys.ts"
import { carriesNoOther, parse, type Proof, verify } from "#events/merkle/Proof.ts"
import * as PersonalDocument from "#events/store/PersonalDocument.ts"
import { leafOf } from "#events/notary/StoredLeaf.ts"

/** Why the proof proves nothing, or not what it should. */
export class NotProved extends Schema.TaggedError<NotProved>()("NotProved", { message: Schema.String }) {}

/**
 * `leaf` is the proved envelope of the event at `index`; `event` is the whole event if one was given. `personal` tells of its personal
 * document: "proved" has its digest; null if the event has none, or was not given.
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
 * `event` is a line of an export, the file of a receipt, or what GET /v1/audit/proofs gives as `event`. Without one the proof's own leaf
 * is verified, which has the hashes of the event's data, but not the data.
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
      refused(event === null ? message : `${message}: the event is not the one that was signed, or the proof is another one's`)
    )
    if (!carriesNoOther(parsed, leaf)) return yield* Result.fail(refused("The proof carries another leaf than that of the event"))
    return { index, checkpoint, leaf, event, personal, note: parsed.checkpoint }
  })

const refused = (message: string) => new NotProved({ message })

type Claimed = Result.Result<Pick<Proved, "leaf" | "personal">, NotProved>

const leafIn = ({ extra }: Proof): Claimed =>
  Option.match(extra, {
    onNone: () => Result.fail(refused("The proof does not carry its leaf: give the event as well")),
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
  return state === "kept" ? Result.succeed("proved") : Result.fail(refused("The personal document is not the one of the event"))
}
