/**
 * From what follows the log back to the requests that wrote it: the spans of the latest appends of this process. It is a convenience of
 * telemetry: what another replica stored, or what lies further back, has no link.
 */
import { Context, type Tracer } from "effect"

/** Appends that are remembered. Only sampled traces are, so this is minutes of traffic. */
const maxRemembered = 1_024
/** Links of one span: more of them tell nothing more. */
const maxLinks = 32

export interface TraceLinks {
  /** Remembers the span that stored the event at `position`, if its trace is sampled. It is plain code, for the hot path. */
  readonly note: (position: number, span: Tracer.AnySpan | undefined) => void
  /** The spans that stored events at positions `from` up to, but not including, `to`. */
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
