/**
 * Links a span of background work to the requests whose events the work processes. Only the spans of this process's newest
 * appends are known: events of other replicas, and older events, have no link.
 */
import { Context, type Tracer } from "effect"

/** Maximum number of remembered appends. Only sampled requests count, so this covers minutes of traffic. */
const maxRemembered = 1_024
/** Maximum number of links of a span. More links would add no information. */
const maxLinks = 32

export interface TraceLinks {
  /** Records `span` as the one that stored the event at `position`, if its trace is sampled. */
  readonly note: (position: number, span: Tracer.AnySpan | undefined) => void
  /** Returns the spans that stored the events at positions `from` (inclusive) to `to` (exclusive). */
  readonly between: (from: number, to: number) => ReadonlyArray<Tracer.SpanLink>
}

const make = (): TraceLinks => {
  const remembered = new Map<number, Tracer.AnySpan>()
  const note = (position: number, span: Tracer.AnySpan | undefined) => {
    if (span?.sampled !== true) return
    if (span._tag === "Span") span.attribute("vatproof.log.position", position)
    remembered.set(position, span)
    const [oldest] = remembered.keys()
    if (remembered.size > maxRemembered && oldest !== undefined) remembered.delete(oldest)
  }
  return {
    note,
    between: (from, to) =>
      [...remembered]
        .filter(([position]) => position >= from && position < to)
        .slice(0, maxLinks)
        .map(([, span]) => ({ span, attributes: {} }))
  }
}

export const TraceLinks = Context.Reference<TraceLinks>("vatproof/domain/kernel/TraceLinks", { defaultValue: make })
