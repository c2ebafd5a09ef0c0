/** A bounded memory of this process: what was used longest ago is forgotten first. It may always be wrong: who uses it must check. */
export interface Memory<V> {
  readonly recall: (key: string) => V | undefined
  readonly remember: (key: string, value: V) => void
  readonly forget: (key: string) => void
}

/**
 * At most `capacity` entries, and at least the half of them that was used last. Two generations instead of an order of all entries: to
 * recall what was used lately changes nothing, and what thousands of recalls a second change is dear to collect.
 */
export const makeMemory = <V>(capacity: number): Memory<V> => {
  const half = Math.max(1, Math.floor(capacity / 2))
  let recent = new Map<string, V>()
  let older = new Map<string, V>()

  const remember = (key: string, value: V) => {
    older.delete(key)
    if (recent.size >= half && !recent.has(key)) {
      older = recent
      recent = new Map()
    }
    recent.set(key, value)
  }

  return {
    recall: (key) => {
      const known = recent.get(key)
      if (known !== undefined) return known
      const before = older.get(key)
      if (before !== undefined) remember(key, before)
      return before
    },
    remember,
    forget: (key) => {
      recent.delete(key)
      older.delete(key)
    }
  }
}
