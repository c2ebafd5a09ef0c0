/** A real SMTP server on a port of 127.0.0.1 that can reject, disconnect, hang and be down. */
import { Context, Deferred, Effect, FiberSet, Layer, MutableRef, Redacted } from "effect"
import { simpleParser, type ParsedMail } from "mailparser"
import { createServer, type AddressInfo } from "node:net"
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from "smtp-server"

/** The server's behaviour for one mail. `drop` closes the connection without an answer. */
export type Conduct =
  | { readonly at: "sender" | "recipient" | "end"; readonly reply: number }
  | { readonly at: "recipient" | "middle" | "end"; readonly drop: true }
  | { readonly at: "recipient" | "end"; readonly hold: Hold }
  | { readonly at: "after"; readonly drop: true }
  | typeof accept

/** A pause of the server. `reached` completes when the pause begins, and the server continues when `go` completes. */
export interface Hold {
  readonly reached: Deferred.Deferred<void>
  readonly go: Deferred.Deferred<void>
}

export const hold = Effect.all({ reached: Deferred.make<void>(), go: Deferred.make<void>() })

/** Accepts the mail: the default. */
export const accept = { at: "none" } as const

/** A mail that the server answered with 250. */
export interface Arrived {
  readonly parsed: ParsedMail
  readonly raw: string
  readonly session: SMTPServerSession
}

export class MailServer extends Context.Service<
  MailServer,
  {
    readonly url: Redacted.Redacted
    /** Queues behaviours for the next mails, one per mail. */
    readonly next: (...conducts: ReadonlyArray<Conduct>) => Effect.Effect<void>
    readonly arrived: Effect.Effect<ReadonlyArray<Arrived>>
    readonly forget: Effect.Effect<void>
    readonly down: Effect.Effect<void>
    readonly up: Effect.Effect<void>
  }
>()("vatproof/test/MailServer") {}

const refusal = (responseCode: number) =>
  Object.assign(new Error(`The test requested the reply ${responseCode}`), { responseCode })

/** Finds a free port. The server uses the same port again after it was down. */
const freePort = Effect.callback<number>((resume) => {
  const probe = createServer()
  probe.listen(0, "127.0.0.1", () => {
    const address: AddressInfo | string | null = probe.address()
    const port = address === null || typeof address === "string" ? 0 : address.port
    probe.close(() => resume(Effect.succeed(port)))
  })
})

const make = Effect.fnUntraced(function* (options: SMTPServerOptions & { readonly credentials?: string }) {
  const conducts: Array<Conduct> = []
  const bySession = new Map<string, Conduct>()
  const arrived = MutableRef.make<ReadonlyArray<Arrived>>([])
  const run = yield* FiberSet.makeRuntime()
  const port = yield* freePort

  const serve = () => {
    const drop = (session: SMTPServerSession) => {
      for (const connection of server.connections) if (connection.session.id === session.id) connection._socket.destroy()
    }
    const answer = (conduct: Conduct, session: SMTPServerSession, callback: (error?: Error | null) => void, go: () => void) => {
      if ("reply" in conduct) callback(refusal(conduct.reply))
      else if ("drop" in conduct) drop(session)
      else if ("hold" in conduct) {
        Deferred.doneUnsafe(conduct.hold.reached, Effect.void)
        run(Effect.andThen(Deferred.await(conduct.hold.go), Effect.sync(go)))
      } else go()
    }
    const server = new SMTPServer({
      authOptional: true,
      logger: false,
      ...options,
      onMailFrom: (_, session, callback) => {
        const conduct = conducts.shift() ?? accept
        bySession.set(session.id, conduct)
        if (conduct.at === "sender") answer(conduct, session, callback, callback)
        else callback()
      },
      onRcptTo: (_, session, callback) => {
        const conduct = bySession.get(session.id) ?? accept
        if (conduct.at === "recipient") answer(conduct, session, callback, callback)
        else callback()
      },
      onData: (stream, session, callback) => {
        const conduct = bySession.get(session.id) ?? accept
        const chunks: Array<Buffer> = []
        stream.on("data", (chunk: Buffer) => {
          chunks.push(chunk)
          if (conduct.at === "middle") answer(conduct, session, callback, () => undefined)
        })
        stream.on("end", () => {
          const take = () => {
            const raw = Buffer.concat(chunks).toString("latin1")
            void simpleParser(raw).then((parsed) => {
              MutableRef.update(arrived, (before) => [...before, { parsed, raw, session: { ...session } }])
              callback(null)
              if (conduct.at === "after") answer(conduct, session, callback, () => undefined)
            })
          }
          if (conduct.at === "end") answer(conduct, session, callback, take)
          else if (conduct.at !== "middle") take()
        })
      }
    })
    server.on("error", () => undefined)
    return server
  }

  let server: SMTPServer | undefined
  const up = Effect.callback<void>((resume) => {
    server = serve()
    server.listen(port, "127.0.0.1", () => resume(Effect.void))
  })
  const down = Effect.callback<void>((resume) => {
    const current = server
    server = undefined
    if (current === undefined) return resume(Effect.void)
    for (const connection of current.connections) connection._socket.destroy()
    current.close(() => resume(Effect.void))
  })
  yield* Effect.acquireRelease(up, () => down)

  const scheme = options.secure === true ? "smtps" : "smtp"
  return MailServer.of({
    url: Redacted.make(`${scheme}://${options.credentials === undefined ? "" : `${options.credentials}@`}127.0.0.1:${port}`),
    next: (...more) => Effect.sync(() => void conducts.push(...more)),
    arrived: Effect.sync(() => arrived.current),
    forget: Effect.sync(() => MutableRef.set(arrived, [])),
    down,
    up
  })
})

export const layer = (options: SMTPServerOptions & { readonly credentials?: string } = {}) =>
  Layer.effect(MailServer, make(options))
