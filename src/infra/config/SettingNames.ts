/** Finds settings that are probably misspelled: ignoring one silently would leave a limit or secret at its default. */
import { ConfigProvider, Option } from "effect"
import { likelyName } from "#domain/kernel/LikelyName.ts"

/**
 * The shortest setting name that is compared with unknown names; it also needs an underscore. Short names resemble those of
 * other programs by chance: HOME is two edits from HOST.
 */
const minLength = 10
/** OpenTelemetry variables that the service does not read, but which resemble others that it reads. */
const foreign: ReadonlySet<string> = new Set(["OTEL_BLRP_SCHEDULE_DELAY"])

/**
 * Returns a ConfigProvider for `env` that records the names of the settings that are read. `misspelled` compares the other names
 * in `env` with them. `others` are known settings that another module reads.
 */
export const settingNames = (env: Readonly<Record<string, string>>, others: ReadonlyArray<string>) => {
  const known = new Set(others)
  const provider = ConfigProvider.mapInput(ConfigProvider.fromEnv({ env }), (path) => {
    known.add(path.join("_"))
    return path
  })
  /** Returns one line with a misspelled name and the probable one; undefined if no name looks misspelled. */
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
