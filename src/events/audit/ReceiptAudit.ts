/** Verifies one proof, and the event it is said to prove, with nothing but the log's public key. */
import { Option, Result, Schema } from "effect"
import type { Checkpoint } from "#events/log/Checkpoint.ts"
import * as EventLine from "#events/log/EventLine.ts"
import type { LogCrypto } from "#events/log/LogCrypto.ts"
import type { Verifiers } from "#events/log/NoteKeys.ts"
import { carriesNoOther, parse, type Proof, verify } from "#events/log/Proof.ts"
import { leafOf } from "#events/log/StoredLeaf.ts"

/** Why the proof proves nothing, or not what it should. */
export class NotProved extends Schema.TaggedError<NotProved>()("NotProved", { message: Schema.String }) {}

/** `leaf` is the proved envelope of the event at `index`; `event` is the whole event if one was given. */
export interface Proved {
  readonly index: number
  readonly checkpoint: Checkpoint
  readonly leaf: string
  readonly event: string | null
}

/**
 * `event` is a line of an export, the file of a receipt, or what GET /v1/audit/proofs gives as `event`. Without one the proof's own leaf
 * is verified, which has the hashes of the event's data, but not the data.
 */
export const run = (
  crypto: LogCrypto["Service"],
  { event, proof, verifiers }: { readonly proof: string; readonly event: string | null; readonly verifiers: Verifiers }
): Result.Result<Proved, NotProved> =>
  Result.gen(function* () {
    const parsed = yield* Result.mapError(parse(proof), ({ message }) => refused(message))
    const leaf = yield* event === null ? leafIn(parsed) : leafFrom(crypto, event)
    const log = { origin: verifiers[0].name, verifiers }
    const { checkpoint, index } = yield* Result.mapError(verify(crypto, proof, { ...log, leaf }), ({ message }) =>
      refused(event === null ? message : `${message}: the event is not the one that was signed, or the proof is another one's`)
    )
    if (!carriesNoOther(parsed, leaf)) return yield* Result.fail(refused("The proof carries another leaf than that of the event"))
    return { index, checkpoint, leaf, event }
  })

const refused = (message: string) => new NotProved({ message })

const leafIn = ({ extra }: Proof): Result.Result<string, NotProved> =>
  Option.match(extra, {
    onNone: () => Result.fail(refused("The proof does not carry its leaf: give the event as well")),
    onSome: (bytes) => Result.succeed(new TextDecoder().decode(bytes))
  })

const leafFrom = (crypto: LogCrypto["Service"], line: string): Result.Result<string, NotProved> =>
  Result.gen(function* () {
    const event = yield* Result.mapError(EventLine.parse(line.trim()), ({ message }) => refused(message))
    return yield* Result.mapError(leafOf(crypto, event), ({ message }) => refused(message))
  })
