/** `vatproof audit …`: exports the log and verifies it. */
import { Command } from "effect/cli"
import { exportLog } from "#app/commands/AuditExport.ts"
import { verify } from "#app/commands/AuditVerification.ts"

export const auditCommands = Command.make("audit").pipe(Command.withSubcommands([exportLog, verify]))
