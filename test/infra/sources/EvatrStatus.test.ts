import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { evatrStatuses, VerdictStatus } from "#infra/sources/EvatrStatus.ts"
import { statusMessages } from "#infra/sandbox/StatusMessages.ts"

/** Every published code: the HTTP status in the list of the simulated BZSt, then the verdict, or the reason, scope and retry of the failure. */
const expected = `
0000 200 valid
0001 - input_rejected question never
0002 400 input_rejected question never
0003 400 valid
0004 400 requester_rejected question never
0005 400 input_rejected question never
0006 403 refused question never
0007 403 input_rejected question never
0008 403 throttled source later
0011 503 unavailable source later
0012 400 input_rejected question never
0013 503 unavailable source later
1001 503 unavailable source later
1002 500 unavailable source later
1003 500 unavailable source later
1004 500 unavailable source later
2001 404 invalid
2002 200 invalid
2003 400 input_rejected question never
2004 500 unavailable source later
2005 404 requester_rejected question never
2006 200 invalid
2007 500 member_state_unavailable member_state later
2008 200 valid
2011 500 unavailable source later
3011 500 unavailable source later
`

describe("the BZSt's status codes", () => {
  it("are the 26 published codes, each with its HTTP status and outcome", () => {
    const https = new Map(statusMessages.map(({ httpcode, status }) => [status, httpcode]))
    const rows = [...evatrStatuses].map(([status, { outcome }]) => {
      const words = typeof outcome === "string" ? outcome : `${outcome.reason} ${outcome.scope} ${outcome.retry}`
      return `${status.replace("evatr-", "")} ${https.get(status) ?? "-"} ${words}`
    })
    assert.deepStrictEqual(rows, expected.trim().split("\n"))
  })

  it("equal the codes in the list that the BZSt publishes", () => {
    assert.deepStrictEqual(
      [...evatrStatuses.keys()],
      statusMessages.map(({ status }) => status)
    )
  })

  it("are verdicts if and only if the schema VerdictStatus contains them", () => {
    const verdicts = [...evatrStatuses].filter(([, { outcome }]) => typeof outcome === "string").map(([status]) => status)
    assert.deepStrictEqual(
      verdicts,
      [...evatrStatuses.keys()].filter((status) => Schema.is(VerdictStatus)(status))
    )
    assert.lengthOf(verdicts, 6)
  })

  it("have a text that completes the sentence of an error message", () => {
    for (const { meaning } of evatrStatuses.values()) assert.match(meaning, /^(?:the|its|a|it) .*[a-zA-Z]$/u)
  })
})
