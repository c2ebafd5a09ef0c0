/** Finds misspelled environment variables. If the service ignored them, a limit or secret would silently keep its default. */
import { ConfigProvider, Option } from "effect"
import { likelyName } from "#domain/text/LikelyName.ts"

/** The environment variable with the number of a worker, which the parent process sets. */
export const workerNumber = "VATPROOF_WORKER"

/**
 * Only settings with at least this many characters and an underscore are compared with unknown variables. Shorter names resemble
 * variables of other programs by chance: HOME is two edits from HOST.
 */
const minLength = 10
/** OpenTelemetry variables that the service ignores, although their names resemble variables that it reads. */
const foreign: ReadonlySet<string> = new Set(["OTEL_BLRP_SCHEDULE_DELAY"])

/**
 * Returns a ConfigProvider for `env` and the function `misspelled`. The provider records the name of each setting that it reads.
 * `others` are the names of settings that another module reads. `misspelled` compares each unknown variable in `env` with all
 * these names.
 */
export const settingNames = (env: Readonly<Record<string, string>>, others: ReadonlyArray<string>) => {
  const known = new Set(others)
  const provider = ConfigProvider.mapInput(ConfigProvider.fromEnv({ env }), (path) => {
    known.add(path.join("_"))
    return path
  })
  /**
   * Returns an error message with the first misspelled variable and the setting that it resembles. Returns undefined if no
   * variable is misspelled.
   */
  const misspelled = (): string | undefined => {
    const candidates = [...known].filter((name) => name.length >= minLength && name.includes("_") && name !== workerNumber)
    for (const name of Object.keys(env)) {
      if (known.has(name) || foreign.has(name)) continue
      const meant = likelyName(name, candidates)
      if (Option.isSome(meant)) return `${name}: There is no such setting; did you mean ${meant.value}?`
    }
    return undefined
  }
  return { provider, misspelled }
}
