/**
 * A bounded cache in this process that evicts the least recently used entries. Entries may be stale: the caller must check them.
 */
export interface LruCache<V> {
  readonly get: (key: string) => V | undefined
  readonly set: (key: string, value: V) => void
  readonly delete: (key: string) => void
}

/**
 * Holds at most `capacity` entries. The `capacity / 2` most recently used entries are never evicted. The cache keeps two
 * generations, recent and older entries, instead of an exact order. A hit on a recent entry changes nothing, so hits create no
 * work for the garbage collector.
 */
export const makeLruCache = <V>(capacity: number): LruCache<V> => {
  const half = Math.max(1, Math.floor(capacity / 2))
  let recent = new Map<string, V>()
  let older = new Map<string, V>()

  const set = (key: string, value: V) => {
    older.delete(key)
    if (recent.size >= half && !recent.has(key)) {
      older = recent
      recent = new Map()
    }
    recent.set(key, value)
  }

  return {
    get: (key) => {
      const hit = recent.get(key)
      if (hit !== undefined) return hit
      const before = older.get(key)
      if (before !== undefined) set(key, before)
      return before
    },
    set,
    delete: (key) => {
      recent.delete(key)
      older.delete(key)
    }
  }
}
