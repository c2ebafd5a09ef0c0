/**
 * Links a span of background work to the requests whose events the work processes. Only the spans of this process's newest
 * appends are known: events of other replicas, and older events, have no link. The ids in the attributes of both spans remain.
 */
import { Context, Effect, type Tracer } from "effect"

/** Maximum number of remembered appends. Only sampled requests count, so this covers minutes of traffic. */
const maxRemembered = 1_024
/** Maximum number of links of a span. More links would add no information. */
const maxLinks = 32

export interface TraceLinks {
  /** Records `span` as the one that stored the event at `position`, if its trace is sampled. */
  readonly note: (position: number, span: Tracer.AnySpan | undefined) => void
  /** Records the current span as the one that submitted a validation or batch, and adds its id to the span. */
  readonly noteSubmission: (attribute: "vatproof.validation_id" | "vatproof.batch_id", id: string) => Effect.Effect<void>
  /** Returns the span that submitted the validation or batch with this id. */
  readonly submissionOf: (id: string) => ReadonlyArray<Tracer.SpanLink>
  /** Returns the spans that stored the events at positions `from` (inclusive) to `to` (exclusive). */
  readonly between: (from: number, to: number) => ReadonlyArray<Tracer.SpanLink>
}

const make = (): TraceLinks => {
  const appends = new Map<number, Tracer.AnySpan>()
  const submissions = new Map<string, Tracer.AnySpan>()
  const remember = <K extends number | string>(
    spans: Map<K, Tracer.AnySpan>,
    attribute: string,
    key: K,
    span?: Tracer.AnySpan
  ) => {
    if (span?.sampled !== true) return
    if (span._tag === "Span") span.attribute(attribute, key)
    spans.set(key, span)
    const [oldest] = spans.keys()
    if (spans.size > maxRemembered && oldest !== undefined) spans.delete(oldest)
  }
  const linkTo = (span: Tracer.AnySpan): Tracer.SpanLink => ({ span, attributes: {} })
  return {
    note: (position, span) => remember(appends, "vatproof.log.position", position, span),
    noteSubmission: (attribute, id) =>
      Effect.withFiber((fiber) => Effect.sync(() => remember(submissions, attribute, id, fiber.cache.span))),
    submissionOf: (id) => [submissions.get(id)].flatMap((span) => (span === undefined ? [] : [linkTo(span)])),
    between: (from, to) =>
      [...appends]
        .filter(([position]) => position >= from && position < to)
        .slice(0, maxLinks)
        .map(([, span]) => linkTo(span))
  }
}

export const TraceLinks = Context.Reference<TraceLinks>("vatproof/domain/telemetry/TraceLinks", { defaultValue: make })
