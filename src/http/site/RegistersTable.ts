/** The table of the registers on the page `/status`, with a bar of the last 90 days for each. The bars are SVG and need no script. */
import { Duration } from "effect"
import { memberStates } from "#domain/vat/MemberStates.ts"
import { type CallCounts, type History, maxDays } from "#domain/vat/SourceHistory.ts"
import type { SourceState } from "#domain/vat/Sources.ts"

export const tones = { operational: "good", degraded: "mixed", unavailable: "bad" } as const

export const utc = (timestamp: string) => `${timestamp.slice(0, 16).replace("T", " ")} UTC`

const dayMs = Duration.toMillis("1 day")
/** Height of a bar. A day is one unit wide. */
const height = 12

/** The height of a day's mark, so that the tones differ without colours too. */
const heights = { good: 4, mixed: 8, bad: height } as const
type Tone = keyof typeof heights

export const historyStyle = `
table.registers th:last-child{width:48%}
svg.days{display:block;width:100%;min-width:8rem;height:1.1rem}
svg.days path{fill:none;-webkit-print-color-adjust:exact;print-color-adjust:exact}
path.base{stroke:var(--line);stroke-width:1}
path.good{stroke:var(--good);stroke-width:${heights.good}}
path.mixed{stroke:var(--mixed);stroke-width:${heights.mixed}}
path.bad{stroke:var(--bad);stroke-width:${heights.bad}}
`

interface Register {
  readonly status: SourceState
  readonly since: string
}

/** Returns the table of all registers, by the prefixes of their VAT IDs. */
export const registersTable = (registers: Readonly<Record<string, Register>>, history: History | null): string => {
  const byState = Map.groupBy(history?.counts ?? [], ({ memberState }) => memberState)
  const rows = Object.entries(registers).map(([prefix, { since, status }]) => {
    const state = status === "operational" ? status : `${status} since ${utc(since)}`
    const calls = history === null ? "<td></td>" : barOf(daysOf(byState.get(prefix) ?? [], history.readAtMs))
    return `<tr><th scope="row">${prefix} <small>${memberStates.get(prefix)?.name ?? ""}</small></th><td class="${tones[status]}">${state}</td>${calls}</tr>`
  })
  const last = `${maxDays} days`
  const legend =
    history === null
      ? "<p>The calls of the last days cannot be read at the moment.</p>"
      : `<p>Each bar shows the last ${last} (UTC), today at the right: low if all calls of the day were answered, higher if some were not, full if none was. A day without calls has no mark and makes no statement. The bars count calls of this service to VIES and the BZSt, not minutes.</p>`
  return `${legend}
<table class="registers">
<thead><tr><th scope="col">VAT IDs that begin with</th><th scope="col">Status</th><th scope="col">Calls of the last ${last}</th></tr></thead>
<tbody>
${rows.join("\n")}
</tbody>
</table>`
}

interface Day {
  readonly calls: number
  readonly answered: number
}

/** Returns the calls of each day, of all sources together. The last day is that of `readAtMs`. */
const daysOf = (counts: ReadonlyArray<CallCounts>, readAtMs: number): ReadonlyArray<Day> => {
  const firstMs = (Math.floor(readAtMs / dayMs) - maxDays + 1) * dayMs
  const days = Array.from({ length: maxDays }, (): Day => ({ calls: 0, answered: 0 }))
  for (const { answered, calls, fromMs } of counts) {
    const index = Math.floor((fromMs - firstMs) / dayMs)
    const day = days[index]
    if (day !== undefined) days[index] = { calls: day.calls + calls, answered: day.answered + answered }
  }
  return days
}

const toneOf = ({ answered, calls }: Day): Tone | null =>
  calls === 0 ? null : answered === calls ? "good" : answered > 0 ? "mixed" : "bad"

/** Returns the cell with the bar of a register and its text. */
const barOf = (days: ReadonlyArray<Day>): string => {
  const tonesOfDays = days.map(toneOf)
  const paths = (["good", "mixed", "bad"] as const).map((tone) => {
    const y = height - heights[tone] / 2
    const runs = runsOf(tonesOfDays, tone).map(([from, length]) => `M${from} ${y}h${length}`)
    return runs.length === 0 ? "" : `<path class="${tone}" d="${runs.join("")}"/>`
  })
  const calls = days.reduce((sum, day) => sum + day.calls, 0)
  const failed = calls - days.reduce((sum, day) => sum + day.answered, 0)
  const count = (tone: Tone) => tonesOfDays.filter((one) => one === tone).length
  const text = calls === 0 ? "no calls" : `${calls} calls, ${failed} not answered`
  const label = `${text}; days with calls: ${count("good")} answered, ${count("mixed")} partly answered, ${count("bad")} not answered`
  return `<td><svg class="days" viewBox="0 0 ${maxDays} ${height}" preserveAspectRatio="none" role="img" aria-label="${label}"><path class="base" d="M0 11.5h${maxDays}"/>${paths.join("")}</svg><small>${text}</small></td>`
}

/** Returns the start and length of each run of days with this tone. */
const runsOf = (days: ReadonlyArray<Tone | null>, tone: Tone): ReadonlyArray<readonly [from: number, length: number]> =>
  days.flatMap((one, from) => {
    if (one !== tone || days[from - 1] === tone) return []
    const end = days.findIndex((other, index) => index > from && other !== tone)
    return [[from, (end === -1 ? days.length : end) - from] as const]
  })
