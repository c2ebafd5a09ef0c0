/** Finds settings that are probably misspelled: ignoring one silently would leave a limit or secret at its default. */
import { ConfigProvider, Option } from "effect"
import { likelyName } from "#domain/kernel/LikelyName.ts"

/**
 * Environments have many foreign names (HOME is two edits from HOST). A name is compared only if it is long enough and has
 * several words.
 */
const minLength = 10
/** OpenTelemetry variables that the service does not read, but which resemble others that it reads. */
const foreign: ReadonlySet<string> = new Set(["OTEL_BLRP_SCHEDULE_DELAY"])

/**
 * Returns the provider of `env` and a function that finds a misspelled name among the unread ones, after all settings were read.
 */
export const settingNames = (env: Readonly<Record<string, string>>, others: ReadonlyArray<string>) => {
  const known = new Set(others)
  const provider = ConfigProvider.mapInput(ConfigProvider.fromEnv({ env }), (path) => {
    known.add(path.join("_"))
    return path
  })
  /** One line with the setting and the probable name. Excludes the value. */
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
