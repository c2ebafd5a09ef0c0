import { assert, it } from "@effect/vitest"
import { memberStates } from "#domain/vat/MemberStates.ts"
import type { SourceCalls } from "#domain/vat/SourceHistory.ts"
import { statusPage } from "#http/site/StatusPage.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"

const site = {
  serviceName: "Vatproof",
  publicUrl: "https://vat.example",
  upgradeUrl: "https://vat.example/plans",
  contact: null,
  isSandbox: false
}
const now = "2026-11-25T14:00:00.000Z"
const operational = { status: "operational", latency_ms: 120, last_checked: now } as const
const prefixes = [...memberStates.keys()]
const report = {
  status: "operational",
  timestamp: now,
  sources: { vies: operational, bzst: operational, cache: { status: "operational" } },
  active_source: "vies",
  failover_active: false,
  member_states: {
    ...Object.fromEntries(prefixes.map((prefix) => [prefix, { status: "operational" as const, since: now }])),
    FR: { status: "unavailable" as const, since: "2026-11-25T13:12:00.000Z" }
  }
} as const

const countOf = (day: string, calls: number, answered: number): SourceCalls => ({
  from: `${day}T00:00:00.000Z`,
  source: "vies",
  calls,
  answered,
  failed: { MS_UNAVAILABLE: calls - answered },
  mean_ms: null,
  max_ms: null
})
const pageWith = (member_states: Readonly<Record<string, ReadonlyArray<SourceCalls>>> | null) =>
  statusPage(site, report, member_states && { timestamp: now, resolution: "day", member_states }, pureCrypto.sha256Hex)

/** Returns the row of a member state. */
const rowOf = (html: string, prefix: string) =>
  html.split("\n").find((line) => line.startsWith(`<tr><th scope="row">${prefix} `)) ?? ""

it("the page /status lists all registers with their names and states", () => {
  const { html } = pageWith({})
  for (const { name, prefix } of memberStates.values()) assert.include(rowOf(html, prefix), `<small>${name}</small>`)
  assert.include(rowOf(html, "FR"), `<td class="bad">unavailable since 2026-11-25 13:12 UTC</td>`)
  assert.include(rowOf(html, "EL"), `<td class="good">operational</td>`)
  assert.include(rowOf(html, "EL"), "no calls")
})

it("the bar of a register shows days that were answered, partly answered and not answered, and says so in its text", () => {
  const { html, policy } = pageWith({
    FR: [
      countOf("2026-08-28", 3, 3),
      countOf("2026-08-29", 3, 3),
      countOf("2026-11-23", 10, 4),
      countOf("2026-11-25", 2, 0),
      { ...countOf("2026-11-25", 5, 0), source: "bzst" }
    ]
  })
  const row = rowOf(html, "FR")
  assert.include(row, `<path class="good" d="M0 10h1M1 10h1"/>`)
  assert.include(row, `<path class="mixed" d="M87 8h1"/>`)
  assert.include(row, `<path class="bad" d="M89 6h1"/>`)
  assert.include(
    row,
    `role="img" aria-label="23 calls, 13 not answered; days with calls: 2 answered, 1 partly answered, 1 not answered"`
  )
  assert.include(row, "<small>23 calls, 13 not answered</small>")
  assert.include(html, "A day without calls has no mark and makes no statement.")
  assert.include(html, "count calls of this service to VIES and the BZSt, not minutes")
  assert.notInclude(html, " style=")
  assert.notInclude(html, "<script")
  assert.notInclude(policy, "unsafe")
})

it("the page /status has at most 40 KiB when each day of each register differs from the day before", () => {
  const days = Array.from({ length: 90 }, (_, index) => new Date(Date.parse(now) - index * 86_400_000).toISOString().slice(0, 10))
  const counts = days.map((day, index) => countOf(day, 1_000_000, [1_000_000, 999_999, 0][index % 3] ?? 0))
  assert.isBelow(Buffer.byteLength(pageWith(Object.fromEntries(prefixes.map((prefix) => [prefix, counts]))).html), 40 * 1024)
})

it("the page /status says that the history cannot be read, and still shows the states", () => {
  const { html } = pageWith(null)
  assert.include(html, "cannot be read at the moment")
  assert.include(rowOf(html, "FR"), "unavailable since")
})
