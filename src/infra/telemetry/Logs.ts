/**
 * Log lines on standard output, or on standard error for commands: JSON for machines, or text for a terminal. Every line names
 * its request and trace, and is redacted (Redaction.ts) at every level.
 */
import { Array as Arr, Cause, Config, Console, Layer, Logger, type LogLevel, Option, Predicate, References, Schema } from "effect"
import { RequestContext } from "#domain/kernel/RequestContext.ts"
import * as FailureReport from "#infra/telemetry/FailureReport.ts"
import type { Redaction } from "#infra/telemetry/Redaction.ts"

const Level = Schema.Literals(["All", "Fatal", "Error", "Warn", "Info", "Debug", "Trace", "None"])
const levelNames: ReadonlyMap<string, LogLevel.LogLevel> = new Map(Level.literals.map((level) => [level.toLowerCase(), level]))
const LevelName = Schema.String.check(
  Schema.makeFilter(
    (text: string) => levelNames.has(text.toLowerCase()) || `Expected one of ${[...levelNames.keys()].join(", ")}`
  )
)

/** The settings of the log. Without LOG_FORMAT the format is JSON in production or without a terminal, otherwise text. */
export const logSettings = Config.all({
  format: Config.schema(Schema.Literals(["json", "pretty"]), "LOG_FORMAT").pipe(Config.option),
  level: Config.schema(LevelName, "LOG_LEVEL").pipe(
    Config.withDefault("info"),
    Config.map((name): LogLevel.LogLevel => levelNames.get(name.toLowerCase()) ?? "Info")
  ),
  production: Config.String("NODE_ENV").pipe(
    Config.map((name) => name === "production"),
    Config.withDefault(false)
  ),
  access: Config.Boolean("ACCESS_LOG").pipe(Config.withDefault(false))
})

export type LogSettings = Config.Success<typeof logSettings>

/** The fields of a log line, in this order. The annotations of the line follow. */
export interface LogLine {
  readonly timestamp: string
  readonly level: string
  readonly message: string
  readonly request_id?: string
  readonly trace_id?: string
  readonly span_id?: string
  readonly [annotation: string]: unknown
}

/** Returns the redacted fields of a line. */
export const lineOf =
  (redaction: Redaction) =>
  ({ cause, date, fiber, logLevel, message }: Logger.Options<unknown>): LogLine => {
    const { requestId, traceId } = fiber.getRef(RequestContext)
    const span = Option.getOrUndefined(Option.filter(spanOf(fiber), (candidate) => candidate._tag === "Span"))
    // Reports an error among the logged values in the field `error`. The first value is always part of the message.
    const content = Arr.ensure(message)
    const isCause = (part: unknown) => part !== content[0] && Predicate.isError(part)
    const parts = content.filter((part) => !isCause(part)).map((part) => redaction.value(part))
    const failures = [cause, ...content.filter(isCause).map((error) => Cause.fail(error))]
      .flatMap((failed) => FailureReport.make(failed))
      .map((failure) => redaction.value(failure))
    return {
      timestamp: date.toISOString(),
      level: logLevel.toLowerCase(),
      message: parts.map((part) => (typeof part === "string" ? part : JSON.stringify(part))).join(" "),
      ...(requestId === "-" ? {} : { request_id: redaction.text(requestId) }),
      ...(traceId === null ? {} : { trace_id: traceId }),
      ...(span === undefined || traceId === null ? {} : { span_id: span.spanId }),
      ...annotationsOf(redaction, fiber.getRef(References.CurrentLogAnnotations)),
      ...(failures.length === 0 ? {} : { error: failures.length === 1 ? failures[0] : failures })
    }
  }

const spanOf = (fiber: Logger.Options<unknown>["fiber"]) => Option.fromNullishOr(fiber.cache.span)

const annotationsOf = (redaction: Redaction, annotations: Readonly<Record<string, unknown>>) => {
  const content = redaction.value(annotations)
  return typeof content === "object" && content !== null ? content : {}
}

const colours: Readonly<Record<string, string>> = { fatal: "31", error: "31", warn: "33", info: "32", debug: "36", trace: "90" }

const prettyOf = ({ error, level, message, timestamp, ...more }: LogLine, coloured: boolean): string => {
  const paint = (text: string, colour: string) => (coloured ? `\u001b[${colour}m${text}\u001b[0m` : text)
  const fields = Object.entries(more).map(
    ([name, value]) => ` ${name}=${typeof value === "string" ? value : JSON.stringify(value)}`
  )
  const failures =
    error === undefined
      ? []
      : Arr.ensure(error).map(
          (failure) => `\n  ${JSON.stringify(failure, null, 2).replaceAll("\\n", "\n    ").replaceAll("\n", "\n  ")}`
        )
  const time = timestamp.slice(11, 23)
  return `${paint(time, "90")} ${paint(level.toUpperCase().padEnd(5), colours[level] ?? "0")} ${message}${paint(fields.join(""), "90")}${failures.join("")}`
}

/** Replaces the default loggers and sets the level. */
export const layer = (settings: LogSettings, redaction: Redaction, isTerminal: boolean) => {
  const line = lineOf(redaction)
  const format = Option.getOrElse(settings.format, () => (settings.production || !isTerminal ? "json" : "pretty"))
  const logger = Logger.make<unknown, void>((options) => {
    const content = line(options)
    const text = format === "json" ? JSON.stringify(content) : prettyOf(content, isTerminal)
    const console = options.fiber.getRef(Console.Console)
    if (options.fiber.getRef(Logger.LogToStderr)) console.error(text)
    else console.log(text)
  })
  return Layer.merge(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, settings.level))
}
