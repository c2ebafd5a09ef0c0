/** The comparison of a database with the schema of the program. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import * as SchemaComparison from "#infra/postgres/SchemaComparison.ts"

export const comparison = Effect.provide(SchemaComparison.load, NodeServices.layer)
