/**
 * Turns at work that takes a processor for long. All clients come in turn, however much one of them wants, and nobody waits in a line that
 * is too long: who would is sent away at once.
 */
import { Effect, PartitionedSemaphore } from "effect"

/** So much work is under way at a time, and so much is under way or waits in all, and of one client. */
export interface FairTurnsOptions {
  readonly atOnce: number
  readonly inAll: number
  readonly ofOneClient: number
}

export interface FairTurns {
  /** Does the work of `client` when its turn comes, or `onFull` at once. */
  readonly take: <A, E, R, B, E2, R2>(
    client: string,
    work: Effect.Effect<A, E, R>,
    onFull: Effect.Effect<B, E2, R2>
  ) => Effect.Effect<A | B, E | E2, R | R2>
}

export const make = ({ atOnce, inAll, ofOneClient }: FairTurnsOptions): Effect.Effect<FairTurns> =>
  Effect.map(PartitionedSemaphore.make<string>({ permits: atOnce }), (turns) => {
    const ofClients = new Map<string, number>()
    let inside = 0

    const count = (client: string, change: 1 | -1) => {
      inside += change
      const ofClient = (ofClients.get(client) ?? 0) + change
      if (ofClient === 0) ofClients.delete(client)
      else ofClients.set(client, ofClient)
    }

    const take: FairTurns["take"] = <A, E, R, B, E2, R2>(
      client: string,
      work: Effect.Effect<A, E, R>,
      onFull: Effect.Effect<B, E2, R2>
    ) =>
      // Nobody may be interrupted between being counted and being sure to be counted out.
      Effect.uninterruptibleMask((restore): Effect.Effect<A | B, E | E2, R | R2> => {
        if (inside >= inAll || (ofClients.get(client) ?? 0) >= ofOneClient) return restore(onFull)
        count(client, 1)
        return Effect.ensuring(
          restore(turns.withPermit(client)(work)),
          Effect.sync(() => count(client, -1))
        )
      })

    return { take }
  })
