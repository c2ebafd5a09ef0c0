/** Accounts: who uses the service, on which plan. Contact data is no part of the facts: it can be erased, they cannot. */
import { Schema } from "effect"
import * as DomainEvent from "#domain/DomainEvent.ts"
import { PlanName } from "#domain/Plan.ts"

/** The stream of an account. */
export const accountStream = (accountId: string): string => `account-${accountId}`

/** An account was made by POST /v1/register, without a password: it has a key and no login. */
export const AccountRegistered = DomainEvent.define(
  "AccountRegistered",
  1,
  Schema.Struct({ account_id: Schema.String, plan: PlanName, with_email: Schema.Boolean, with_agent_id: Schema.Boolean })
)
