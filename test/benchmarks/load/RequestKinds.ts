/** The kinds of request that clients send, and how often: `weight` of the 20 requests of a mix. */

export interface RequestKind {
  readonly weight: number
  /** The status that the service has to answer. */
  readonly status: string
  /** Asks about a VAT ID that was never asked about before. */
  readonly isNew: boolean
  /** Without a key the client's address is in X-Forwarded-For. */
  readonly hasKey: boolean
  readonly target: (vatId: string, index: number) => string
}

const validation = (vatId: string) => `/v1/validate/${vatId}`

/** In groups as people write them: AT U10 100 007. */
const grouped = (vatId: string, separator: string) =>
  [vatId.slice(0, 2), ...(vatId.slice(2).match(/.{1,3}/gu) ?? [])].join(separator)

const spellings: ReadonlyArray<(vatId: string) => string> = [
  (vatId) => grouped(vatId, "%20"),
  (vatId) => vatId.toLowerCase(),
  (vatId) => grouped(vatId, "-"),
  (vatId) => grouped(vatId, ".")
]

const spelled = (vatId: string, index: number) => spellings[index % spellings.length]?.(vatId) ?? vatId

const cached: RequestKind = { weight: 8, status: "200", isNew: false, hasKey: true, target: validation }

export const kinds = {
  cached,
  spelled: { ...cached, weight: 3, target: (vatId: string, index: number) => validation(spelled(vatId, index)) },
  parameter: { ...cached, weight: 3, target: (vatId: string) => `${validation(vatId)}?force_live=false` },
  anonymous: { ...cached, weight: 2, hasKey: false },
  usage: { ...cached, weight: 2, target: () => "/v1/usage" },
  live: { ...cached, weight: 1, isNew: true },
  // The last digit is missing.
  malformed: { ...cached, weight: 1, status: "400", target: (vatId: string) => validation(vatId.slice(0, -1)) }
} as const satisfies Readonly<Record<string, RequestKind>>

export type Name = keyof typeof kinds

const isName = (text: string): text is Name => text in kinds

export const names: ReadonlyArray<Name> = Object.keys(kinds).filter(isName)

/** The order in which requests of these kinds follow one another, as even as their weights allow. It begins again at its end. */
export const order = (chosen: ReadonlyArray<Name>): ReadonlyArray<Name> => {
  const total = chosen.reduce((sum, name) => sum + kinds[name].weight, 0)
  const turns: Array<Name> = []
  const behind = (name: Name) => (kinds[name].weight * (turns.length + 1)) / total - turns.filter((turn) => turn === name).length
  while (turns.length < total) {
    turns.push(chosen.reduce((first, name) => (behind(name) > behind(first) ? name : first)))
  }
  return turns
}
