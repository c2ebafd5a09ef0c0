/** A bounded memory of this process: the entries used longest ago are forgotten first. It may always be wrong: who uses it must check. */
export interface Memory<V> {
  readonly recall: (key: string) => V | undefined
  readonly remember: (key: string, value: V) => void
  readonly forget: (key: string) => void
}

export const makeMemory = <V>(capacity: number): Memory<V> => {
  // A Map keeps the order of insertion: what is recalled is inserted anew.
  const entries = new Map<string, V>()
  return {
    recall: (key) => {
      const value = entries.get(key)
      if (value !== undefined) {
        entries.delete(key)
        entries.set(key, value)
      }
      return value
    },
    remember: (key, value) => {
      entries.delete(key)
      entries.set(key, value)
      if (entries.size > capacity) {
        for (const oldest of entries.keys()) {
          entries.delete(oldest)
          break
        }
      }
    },
    forget: (key) => {
      entries.delete(key)
    }
  }
}
