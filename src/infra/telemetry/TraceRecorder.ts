/**
 * The tracer: it records spans at the price of a small object each, and decides at the end of a trace's part in this process whether
 * they are exported. So errors and failovers are kept whatever the sampler said, and the rest costs next to nothing.
 *
 * A trace begins with a request (a `server` span), a job (a `consumer` span) or a batch that serves requests; what runs outside is not recorded. Only the
 * attributes listed here are recorded, so that what a library adds of its own accord (paths, addresses, statements) stays in the process.
 */
import { Cause, type Context, type Exit, Option, Predicate, Tracer } from "effect"
import { Hex } from "effect/encoding"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Sampler } from "#infra/telemetry/Sampler.ts"
import * as StatementName from "#infra/telemetry/StatementName.ts"

/** A span that ended. Times are nanoseconds since 1970. */
export interface RecordedSpan {
  readonly name: string
  readonly kind: Tracer.SpanKind
  readonly traceId: string
  readonly spanId: string
  readonly parent: Option.Option<Tracer.AnySpan>
  readonly startTime: bigint
  readonly endTime: bigint
  readonly attributes: ReadonlyMap<string, AttributeValue>
  readonly links: ReadonlyArray<Tracer.SpanLink>
  readonly failed: boolean
}

export type AttributeValue = string | number | boolean

export interface TraceRecorderOptions {
  readonly sampler: Sampler
  /** Whether traces with a failure are kept although the sampler dropped them. */
  readonly keepsFailures: boolean
  /** Takes spans to export; it must not wait. */
  readonly emit: (spans: ReadonlyArray<RecordedSpan>) => void
}

/** Bounds: spans of one trace, and characters of an attribute. */
const maxSpans = 200
const maxLength = 200
/** Traces a second that are kept for their failures: an outage is told by some of them. */
const maxKeptPerSecond = 50

/** The names that OpenTelemetry's semantic conventions 1.43 give (read 2026-11); our own begin with `vatproof.`. */
const recorded: ReadonlySet<string> = new Set([
  "db.collection.name",
  "db.namespace",
  "db.operation.batch.size",
  "db.operation.name",
  "db.stored_procedure.name",
  "db.system.name",
  "error.type",
  "http.request.method",
  "http.response.status_code",
  "http.route",
  "network.protocol.version",
  "server.address",
  "server.port",
  "url.full",
  "url.scheme",
  "url.template"
])
const ownPrefix = "vatproof."
/** As which the client names its statement; it is not recorded. */
const statementAttribute = "db.query.text"

/** An attribute of a span whose trace is kept. */
export const failoverAttribute = "vatproof.failover"

interface Trace {
  readonly id: string
  readonly sampled: boolean
  /** Null once the part of this process has ended. */
  spans: Array<Span> | null
  kept: boolean
  exported: boolean
}

const noAttributes: ReadonlyMap<string, AttributeValue> = new Map()

type SpanOptions = Parameters<Tracer.Tracer["span"]>[0]

class Span implements Tracer.Span, RecordedSpan {
  readonly _tag = "Span"
  name: string
  readonly kind: Tracer.SpanKind
  readonly parent: Option.Option<Tracer.AnySpan>
  readonly annotations: Context.Context<never>
  readonly links: Array<Tracer.SpanLink>
  readonly startTime: bigint
  endTime = 0n
  failed = false
  status: Tracer.SpanStatus
  readonly trace: Trace
  private readonly onEnd: (span: Span) => void
  private id: string | undefined = undefined
  private recordedAttributes: Map<string, AttributeValue> | undefined = undefined

  constructor(options: SpanOptions, trace: Trace, onEnd: (span: Span) => void) {
    this.name = options.name
    this.kind = options.kind
    this.parent = options.parent
    this.annotations = options.annotations
    this.links = options.links
    this.startTime = options.startTime
    this.status = { _tag: "Started", startTime: options.startTime }
    this.trace = trace
    this.onEnd = onEnd
  }

  get traceId(): string {
    return this.trace.id
  }

  get spanId(): string {
    return (this.id ??= Hex.random(16))
  }

  get sampled(): boolean {
    return this.trace.sampled
  }

  get attributes(): ReadonlyMap<string, AttributeValue> {
    return this.recordedAttributes ?? noAttributes
  }

  attribute(key: string, value: unknown): void {
    if (key === statementAttribute) return this.describe(StatementName.make(String(value)))
    if (!recorded.has(key) && !key.startsWith(ownPrefix)) return
    const attributes = (this.recordedAttributes ??= new Map())
    if (typeof value === "string") attributes.set(key, value.slice(0, maxLength))
    else if (typeof value === "number" || typeof value === "boolean") attributes.set(key, value)
  }

  /** A statement's text is long and may hold values: its operation and target stand for it. */
  private describe({ attributes, name }: StatementName.StatementName): void {
    this.name = name
    for (const [key, value] of attributes) this.attribute(key, value)
  }

  /** Not recorded: what is worth an event here is a log line, which has the trace's id. */
  event(): void {}

  addLinks(links: ReadonlyArray<Tracer.SpanLink>): void {
    this.links.push(...links.slice(0, maxSpans))
  }

  end(endTime: bigint, exit: Exit.Exit<unknown, unknown>): void {
    if (this.status._tag === "Ended") return
    this.status = { _tag: "Ended", startTime: this.startTime, endTime, exit }
    this.endTime = endTime
    this.failed = this.conclude(exit)
    this.onEnd(this)
  }

  /**
   * A server's span failed with a status of 500 and above, a client's with an error; a refusal within the process is no failure of it,
   * whereas a defect always is (https://opentelemetry.io/docs/specs/semconv/http/http-spans/#status, read 2026-11).
   */
  private conclude(exit: Exit.Exit<unknown, unknown>): boolean {
    if (exit._tag === "Failure" && !Cause.hasInterruptsOnly(exit.cause)) {
      if (!this.attributes.has("error.type")) this.attribute("error.type", errorType(exit.cause))
      if (Cause.hasDies(exit.cause)) return true
    }
    switch (this.kind) {
      case "server":
        return Number(this.attributes.get("http.response.status_code") ?? 0) >= 500
      case "internal":
        return false
      default:
        return this.attributes.has("error.type")
    }
  }
}

/** The name of what went wrong; never its message, which may hold anything. */
const errorType = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  if (isSqlError(error)) return sqlStateOf(error) ?? error.reason._tag
  if (Predicate.hasProperty(error, "_tag") && Predicate.isString(error._tag)) return error._tag
  return Predicate.isError(error) ? error.name : "defect"
}

/** PostgreSQL's five characters; none where the connection failed. */
const sqlStateOf = ({ reason: { cause } }: SqlError): string | undefined => {
  const code = Predicate.hasProperty(cause, "code") ? cause.code : undefined
  return Predicate.isString(code) && /^[0-9A-Z]{5}$/u.test(code) ? code : undefined
}

/** Looks and costs like a span, and goes nowhere. */
const unrecorded = (options: SpanOptions) => new Tracer.NativeSpan({ ...options, sampled: false })

export const make = ({ emit, keepsFailures, sampler }: TraceRecorderOptions): Tracer.Tracer => {
  let currentSecond = 0n
  let keptInSecond = 0

  const mayKeep = (endTime: bigint) => {
    const second = endTime / 1_000_000_000n
    keptInSecond = second === currentSecond ? keptInSecond + 1 : 1
    currentSecond = second
    return keptInSecond <= maxKeptPerSecond
  }

  const note = (span: Span) => {
    if (span.failed || span.attributes.get(failoverAttribute) === true) span.trace.kept = true
  }

  const onChildEnd = (span: Span) => {
    const { trace } = span
    note(span)
    if (trace.spans === null) {
      if (trace.exported) emit([span])
    } else if (trace.spans.length < maxSpans) trace.spans.push(span)
  }

  const onRootEnd = (span: Span) => {
    const { trace } = span
    note(span)
    const spans = [...(trace.spans ?? []), span]
    trace.spans = null
    trace.exported = trace.sampled || (trace.kept && keepsFailures && mayKeep(span.endTime))
    if (trace.exported) emit(spans)
  }

  const begin = (options: SpanOptions) => {
    const remote = Option.getOrUndefined(options.parent)
    const id = remote?.traceId.padStart(32, "0") ?? Hex.random(32)
    // A job goes with the requests that caused it: a link to a trace that is not kept would lead nowhere, and the other way round.
    const linked = options.links.some(({ span }) => span.sampled)
    const trace: Trace = { id, sampled: linked || sampler(id, remote?.sampled ?? null), spans: [], kept: false, exported: false }
    return new Span(options, trace, onRootEnd)
  }

  return Tracer.make({
    span: (options) => {
      const parent = options.root ? undefined : Option.getOrUndefined(options.parent)
      if (parent instanceof Span) return new Span(options, parent.trace, onChildEnd)
      // A batch is linked to the requests that it serves.
      const begins = options.kind === "server" || options.kind === "consumer" || options.links.length > 0
      return begins && (parent === undefined || parent._tag === "ExternalSpan") ? begin(options) : unrecorded(options)
    }
  })
}
