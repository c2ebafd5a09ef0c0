/** The range of signed events in an export. */
export interface Extent {
  readonly from: number
  readonly to: number
  readonly size: number
}

export const leftOut = ({ from, size, to }: Extent) => ({ left_out: { earlier: from, later: size - to } })
export const leftOutIn = ({ from, size, to }: Extent) => `${from} earlier and ${size - to} later ones are left out`
