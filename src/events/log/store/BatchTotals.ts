/** Sums up what the commands of one group commit (the batch) add to their streams, meters or rate windows. */
import { elementType, sqlArray } from "#events/log/database/SqlArray.ts"

/**
 * Numbers the names of streams, meters or rate windows from 1, and sums up what the batch adds to each of them. Also computes the
 * room of each name: the largest value before the batch with which all commands of the batch stay within their caps.
 */
export class BatchTotals {
  private readonly numbers = new Map<string, number>()
  private readonly names: Array<string> = []
  private readonly added: Array<number> = []
  private readonly rooms: Array<number> = []

  /**
   * Adds `units` to a name and returns the number of the name. `cap` is the maximum of the total. It does not apply if `units` is
   * zero.
   */
  add(name: string, units: number, cap: number = Number.MAX_SAFE_INTEGER): number {
    const number = this.numbers.get(name) ?? this.begin(name)
    const sum = (this.added[number - 1] ?? 0) + units
    this.added[number - 1] = sum
    if (units > 0) this.rooms[number - 1] = Math.min(this.rooms[number - 1] ?? 0, cap - sum)
    return number
  }

  addedTo(number: number): number {
    return this.added[number - 1] ?? 0
  }

  get nameColumn() {
    return sqlArray(this.names, elementType.text)
  }

  get addedColumn() {
    return sqlArray(this.added.map(BigInt), elementType.int8)
  }

  /** The parameters with the names, the totals and the rooms. */
  get columns() {
    return [this.nameColumn, this.addedColumn, sqlArray(this.rooms.map(BigInt), elementType.int8)]
  }

  private begin(name: string): number {
    const number = this.names.push(name)
    this.numbers.set(name, number)
    this.added.push(0)
    this.rooms.push(Number.MAX_SAFE_INTEGER)
    return number
  }
}
