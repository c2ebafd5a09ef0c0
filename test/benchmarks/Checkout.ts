/** A checkout of the service, and the Node flags it runs with. */
import { Schema } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"

export interface Checkout {
  readonly root: string
  /** Node flags in addition to the flags in the script `start` of the checkout's package.json. */
  readonly nodeFlags: ReadonlyArray<string>
}

export const present: Checkout = { root: join(import.meta.dirname, "../.."), nodeFlags: [] }

const Package = Schema.fromJsonString(Schema.Struct({ scripts: Schema.Struct({ start: Schema.String }) }))
const decodePackage = Schema.decodeUnknownSync(Package)

/** Returns the flags between `node` and the program in an npm script. */
const nodeFlagsOf = (script: string) => script.slice(0, script.indexOf(program)).match(/(?<=\s)--\S+/gu) ?? []

const program = "src/main.ts"

/** Returns the arguments with which Node starts `vatproof serve`. `nodeFlags` come last, because Node uses the last of repeated flags. */
export const serveArguments = ({ nodeFlags, root }: Checkout) => {
  const { scripts } = decodePackage(readFileSync(join(root, "package.json"), "utf8"))
  return [...nodeFlagsOf(scripts.start), ...nodeFlags, join(root, program), "serve"]
}
