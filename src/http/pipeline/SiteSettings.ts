/** Settings of the operator that pages, documents and errors show. */
import { Context } from "effect"

export interface SiteSettings {
  readonly serviceName: string
  /** The service's URL for callers, without a final slash. */
  readonly publicUrl: string
  /** URL of the page that tells callers how to get a larger plan. */
  readonly upgradeUrl: string
  /** The operator's address, as a `mailto:` or `https:` URI; null if the operator publishes none. */
  readonly contact: string | null
  /** True if all answers are simulated. */
  readonly isSandbox: boolean
}

export const Site = Context.Reference<SiteSettings>("vatproof/http/pipeline/SiteSettings", {
  defaultValue: () => ({
    serviceName: "vatproof",
    publicUrl: "http://127.0.0.1:8080",
    upgradeUrl: "/plans",
    contact: null,
    isSandbox: false
  })
})

/** Returns the path prefix of the public URL, without a final slash. It is empty unless a proxy adds a prefix. */
export const basePath = ({ publicUrl }: SiteSettings): string => new URL(publicUrl).pathname.replace(/\/$/u, "")

/** The paths of the documents that describe the interface. */
export const documentPaths = {
  openApi: "/openapi.json",
  docs: "/docs",
  llms: "/llms.txt"
} as const
