/** Settings that are probably misspelled: one that is ignored silently leaves a limit or a secret at its default. */
import { ConfigProvider, Option } from "effect"
import { likelyName } from "#domain/kernel/LikelyName.ts"

/**
 * Environments are full of foreign names (HOME is two edits from HOST). A name is taken for one of ours only if it is as long as ours mostly are,
 * and has several words.
 */
const minLength = 10
/** Names that the service does not read although OpenTelemetry defines them, near to others that it reads. */
const foreign: ReadonlySet<string> = new Set(["OTEL_BLRP_SCHEDULE_DELAY"])

/** Gives the provider of `env` and what finds a misspelled name among those that were not asked for, after all settings were read. */
export const settingNames = (env: Readonly<Record<string, string>>, others: ReadonlyArray<string>) => {
  const known = new Set(others)
  const provider = ConfigProvider.mapInput(ConfigProvider.fromEnv({ env }), (path) => {
    known.add(path.join("_"))
    return path
  })
  /** One line that names the setting and what was probably meant; the value stays out. */
  const misspelled = (): string | undefined => {
    const candidates = [...known].filter((name) => name.length >= minLength && name.includes("_"))
    for (const name of Object.keys(env)) {
      if (known.has(name) || foreign.has(name)) continue
      const meant = likelyName(name, candidates)
      if (Option.isSome(meant)) return `${name}: There is no such setting; did you mean ${meant.value}?`
    }
    return undefined
  }
  return { provider, misspelled }
}
