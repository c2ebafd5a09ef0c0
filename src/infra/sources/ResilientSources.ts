/** Both sources behind their guards, shared by all callers. */
import { Context, Effect, Layer } from "effect"
import { isGerman } from "#domain/vat/VatId.ts"
import type { Answer } from "#domain/vat/Verdict.ts"
import { Bzst, type BzstAnswer } from "#infra/sources/Bzst.ts"
import * as ResilientSource from "#infra/sources/ResilientSource.ts"
import * as SourceProbes from "#infra/sources/SourceProbes.ts"
import { Vies } from "#infra/sources/Vies.ts"

/** Maximum number of concurrent calls about one member state, at each source. */
const concurrentPerMemberState = 10

export class ResilientSources extends Context.Service<
  ResilientSources,
  { readonly vies: ResilientSource.ResilientSource<Answer>; readonly bzst: ResilientSource.ResilientSource<BzstAnswer> }
>()("vatproof/infra/sources/ResilientSources") {}

export const layer = Layer.effect(
  ResilientSources,
  Effect.gen(function* () {
    const vies = yield* Vies
    const bzst = yield* Bzst
    return {
      vies: yield* ResilientSource.make({
        source: "vies",
        ask: vies.check,
        probe: Effect.filterOrFail(vies.available, (available) => available, SourceProbes.saysUnavailable),
        concurrentPerMemberState,
        // German VAT IDs have a short timeout, because their register is fast and the BZSt is the fallback. Some other registers
        // take 16 s (measured 2026-11).
        timeout: (vatId) => (isGerman(vatId) ? "8 seconds" : "20 seconds")
      }),
      bzst: yield* ResilientSource.make({
        source: "bzst",
        ask: ({ requester, vatId }) =>
          requester === null
            ? Effect.die("The requester that the BZSt requires is missing in a query (a defect)")
            : bzst.ask({ vatId, requester, company: null }),
        probe: bzst.info,
        concurrentPerMemberState,
        timeout: () => "15 seconds"
      })
    }
  })
)
