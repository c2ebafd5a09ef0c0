/** Kinds of benchmark requests. */

export interface RequestKind {
  /** Number of requests of this kind among 20 requests of the mix; 0 if the mix omits the kind. */
  readonly weight: number
  /** Expected status. */
  readonly status: string
  /** Every request has a different VAT ID, which is not cached. */
  readonly isNew: boolean
  /** Requests without a key carry the client's address in X-Forwarded-For. */
  readonly hasKey: boolean
  readonly target: (vatId: string, index: number) => string
  /** Text that each expected response contains; null for any text. */
  readonly contains: string | null
  /** Body of a POST to /v1/validations, which submits a validation to be answered later; null for a GET. */
  readonly body: ((vatId: string) => string) | null
}

const validation = (vatId: string) => `/v1/validate/${vatId}`

/** Splits a VAT ID into groups, as in AT U10 100 007. */
const grouped = (vatId: string, separator: string) =>
  [vatId.slice(0, 2), ...(vatId.slice(2).match(/.{1,3}/gu) ?? [])].join(separator)

const spellings: ReadonlyArray<(vatId: string) => string> = [
  (vatId) => grouped(vatId, "%20"),
  (vatId) => vatId.toLowerCase(),
  (vatId) => grouped(vatId, "-"),
  (vatId) => grouped(vatId, ".")
]

const spelled = (vatId: string, index: number) => spellings[index % spellings.length]?.(vatId) ?? vatId

const cached: RequestKind = {
  weight: 8,
  status: "200",
  isNew: false,
  hasKey: true,
  target: validation,
  contains: null,
  body: null
}

export const kinds = {
  cached,
  spelled: { ...cached, weight: 3, target: (vatId: string, index: number) => validation(spelled(vatId, index)) },
  parameter: { ...cached, weight: 3, target: (vatId: string) => `${validation(vatId)}?force_live=false` },
  anonymous: { ...cached, weight: 2, hasKey: false },
  usage: { ...cached, weight: 2, target: () => "/v1/usage" },
  live: { ...cached, weight: 1, isNew: true, contains: '"cache":false' },
  // A VAT ID without its last digit.
  malformed: { ...cached, weight: 1, status: "400", target: (vatId: string) => validation(vatId.slice(0, -1)) },
  // The validation stays pending, because all sources are down in this load.
  submission: {
    ...cached,
    weight: 0,
    status: "202",
    isNew: true,
    target: () => "/v1/validations",
    contains: '"status":"pending"',
    body: (vatId: string) => JSON.stringify({ vat_id: vatId })
  }
} as const satisfies Readonly<Record<string, RequestKind>>

export type Name = keyof typeof kinds

const isName = (text: string): text is Name => text in kinds

export const names: ReadonlyArray<Name> = Object.keys(kinds).filter(isName)

/** The kinds of requests in the benchmark's mixed load: those with a weight. */
export const mixed = names.filter((name) => kinds[name].weight > 0)

/** The repeating order of the requests. It spreads each kind evenly by its weight. */
export const order = (chosen: ReadonlyArray<Name>): ReadonlyArray<Name> => {
  if (chosen.length === 1) return chosen
  const total = chosen.reduce((sum, name) => sum + kinds[name].weight, 0)
  const sequence: Array<Name> = []
  const behind = (name: Name) =>
    (kinds[name].weight * (sequence.length + 1)) / total - sequence.filter((each) => each === name).length
  while (sequence.length < total) {
    sequence.push(chosen.reduce((first, name) => (behind(name) > behind(first) ? name : first)))
  }
  return sequence
}
