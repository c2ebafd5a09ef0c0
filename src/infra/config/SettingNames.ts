/** Finds misspelled environment variables. If they were ignored, a limit or secret would silently keep its default. */
import { ConfigProvider, Option } from "effect"
import { likelyName } from "#domain/kernel/LikelyName.ts"

/**
 * Only settings with at least this many characters and an underscore are compared with unknown variables. Shorter names resemble
 * variables of other programs by chance: HOME is two edits from HOST.
 */
const minLength = 10
/** OpenTelemetry variables that the service ignores, although their names resemble variables that it reads. */
const foreign: ReadonlySet<string> = new Set(["OTEL_BLRP_SCHEDULE_DELAY"])

/**
 * Returns a ConfigProvider for `env` that records which settings are read. `misspelled` compares the other variables in `env`
 * with these settings. `others` are settings that another module reads.
 */
export const settingNames = (env: Readonly<Record<string, string>>, others: ReadonlyArray<string>) => {
  const known = new Set(others)
  const provider = ConfigProvider.mapInput(ConfigProvider.fromEnv({ env }), (path) => {
    known.add(path.join("_"))
    return path
  })
  /** Returns an error message about the first misspelled variable and the setting that it resembles; undefined without one. */
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
