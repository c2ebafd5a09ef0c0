/** The official sources, VIES and BZSt, with their failover. */
import { hostname } from "node:os"
import { Effect, Layer, Option } from "effect"
import { AppConfig, type Settings } from "#infra/config/AppConfig.ts"
import * as Bzst from "#infra/sources/Bzst.ts"
import * as BzstConfirmations from "#infra/sources/BzstConfirmations.ts"
import * as OperatorRequester from "#infra/sources/OperatorRequester.ts"
import * as ResilientSources from "#infra/sources/ResilientSources.ts"
import * as SourceFailover from "#infra/sources/SourceFailover.ts"
import * as SourceHttp from "#infra/sources/SourceHttp.ts"
import * as Vies from "#infra/sources/Vies.ts"
import * as ViesBudget from "#infra/sources/ViesBudget.ts"

/** The official base URLs of VIES and BZSt (as of 2026-11). */
export const liveSources = {
  viesBaseUrl: "https://ec.europa.eu/taxation_customs/vies/rest-api",
  bzstBaseUrl: "https://api.evatr.vies.bzst.de/app"
}

/** The base URLs of the sources that apply if the settings contain none. */
export interface DefaultSources {
  readonly viesBaseUrl: string
  readonly bzstBaseUrl: string
}

/** Returns the name of this replica in events and log lines. */
export const replicaOf = ({ port }: Settings) => `${hostname()}:${port}`

export const sources = (defaults: DefaultSources) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const config = yield* AppConfig
      const viesBaseUrl = Option.getOrElse(config.viesBaseUrl, () => defaults.viesBaseUrl)
      const { lend, note: noteRequester } = yield* OperatorRequester.make(config.requester)
      const viesOptions = { baseUrl: viesBaseUrl, noteRequester }
      const vies = Layer.unwrap(
        Option.match(config.viesPerDay, {
          onNone: () => Effect.succeed(Vies.layer(viesOptions)),
          onSome: (perDay) => Effect.map(ViesBudget.make(perDay), (spend) => Vies.layer({ ...viesOptions, spend }))
        })
      )
      const bzst = Bzst.layer({ baseUrl: Option.getOrElse(config.bzstBaseUrl, () => defaults.bzstBaseUrl) })
      const failover = SourceFailover.layer({ requester: config.bzstRequester, lend, replica: replicaOf(config) })
      return Layer.merge(failover, BzstConfirmations.layer).pipe(
        Layer.provide(ResilientSources.layer),
        Layer.provide([vies, bzst]),
        Layer.provide(SourceHttp.layerClient)
      )
    })
  )
