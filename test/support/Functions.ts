/** The definitions of the SQL functions in migrations/functions. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import * as Migrations from "#infra/postgres/Migrations.ts"

export const bodies = Effect.provide(Migrations.functionBodies, NodeServices.layer)
