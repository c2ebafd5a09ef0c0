/** The table of the registers on the page `/status`, with a bar of the last 90 days for each. The bars are SVG and need no script. */
import { Array as Arr, DateTime } from "effect"
import { memberStates } from "#domain/vat/MemberStates.ts"
import { type History, maxDays, type SourceCalls } from "#domain/vat/SourceHistory.ts"
import type { SourceStatusReport } from "#http/system/SystemApi.ts"

type Report = typeof SourceStatusReport.Encoded

export const tones = { operational: "good", degraded: "mixed", unavailable: "bad" } as const

export const utc = (timestamp: string) => `${timestamp.slice(0, 16).replace("T", " ")} UTC`

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

/** Returns the table of all registers, by the prefixes of their VAT IDs. */
export const registersTable = (registers: Report["member_states"], history: History | null): string => {
  const today = DateTime.makeUnsafe(history?.timestamp ?? 0)
  const days = Arr.makeBy(maxDays, (nth) => DateTime.formatIsoDateUtc(DateTime.subtract(today, { days: maxDays - 1 - nth })))
  const rows = Object.entries(registers).map(([prefix, { since, status }]) => {
    const state = status === "operational" ? status : `${status} since ${utc(since)}`
    const bar = history === null ? "" : barOf(days, history.member_states[prefix] ?? [])
    return `<tr><th scope="row">${prefix} <small>${memberStates.get(prefix)?.name ?? ""}</small></th><td class="${tones[status]}">${state}</td><td>${bar}</td></tr>`
  })
  const legend =
    history === null
      ? "The calls of the last days cannot be read at the moment."
      : `Each bar shows the last ${maxDays} days (UTC), today at the right: low if all calls of the day were answered, higher if some were not, full if none was. A day without calls has no mark and makes no statement. The bars count calls of this service to VIES and the BZSt, not minutes.`
  return `<p>${legend}</p>
<table class="registers">
<thead><tr><th scope="col">VAT IDs that begin with</th><th scope="col">Status</th><th scope="col">Calls of the last ${maxDays} days</th></tr></thead>
<tbody>
${rows.join("\n")}
</tbody>
</table>`
}

const sumOf = (counts: ReadonlyArray<SourceCalls>, key: "calls" | "answered") => counts.reduce((sum, one) => sum + one[key], 0)

/** Returns the bar of a register, and its text. The bar counts the calls of all sources together. */
const barOf = (days: ReadonlyArray<string>, counts: ReadonlyArray<SourceCalls>): string => {
  const byDay = Map.groupBy(counts, ({ from }) => from.slice(0, 10))
  const tonesOfDays = days.map((day) => {
    const [calls, answered] = [sumOf(byDay.get(day) ?? [], "calls"), sumOf(byDay.get(day) ?? [], "answered")]
    return calls === 0 ? null : answered === calls ? "good" : answered > 0 ? "mixed" : "bad"
  })
  const count = (tone: Tone) => tonesOfDays.filter((one) => one === tone).length
  const paths = (["good", "mixed", "bad"] as const).map((tone) => {
    const y = height - heights[tone] / 2
    return `<path class="${tone}" d="${tonesOfDays.map((one, day) => (one === tone ? `M${day} ${y}h1` : "")).join("")}"/>`
  })
  const calls = sumOf(counts, "calls")
  const text = calls === 0 ? "no calls" : `${calls} calls, ${calls - sumOf(counts, "answered")} not answered`
  const label = `${text}; days with calls: ${count("good")} answered, ${count("mixed")} partly answered, ${count("bad")} not answered`
  return `<svg class="days" viewBox="0 0 ${maxDays} ${height}" preserveAspectRatio="none" role="img" aria-label="${label}"><path class="base" d="M0 11.5h${maxDays}"/>${paths.join("")}</svg><small>${text}</small>`
}
