/** What a log is for. The answers in the log of a sandbox are simulated, so nothing in it is evidence (rule 89). */
import { Schema } from "effect"
import * as DomainEvent from "#domain/log/DomainEvent.ts"

export const LogPurpose = Schema.Literals(["live", "sandbox"])
export type LogPurpose = typeof LogPurpose.Type

/** A log was opened. This is the first event of every log, at position 0. All answers in the log of a sandbox are simulated. */
export const LogOpened = DomainEvent.define("LogOpened", 1, Schema.Struct({ purpose: LogPurpose }))

const endings = { live: "/log/0", sandbox: "/sandbox/0" } as const satisfies Record<LogPurpose, string>

/** Returns the name of the log of an owner. The name is in every checkpoint and proof, so the signature covers the purpose. */
export const logNameOf = (owner: string, purpose: LogPurpose): string => `${owner}${endings[purpose]}`

export const purposeIn = (logName: string): LogPurpose => (logName.endsWith(endings.sandbox) ? "sandbox" : "live")
