/** What a service tells of itself on pages, in documents and in errors; the configuration sets it. */
import { Context } from "effect"

export interface SiteSettings {
  readonly serviceName: string
  /** Where callers reach the service, without a slash at the end. */
  readonly publicUrl: string
  /** Where a caller gets a larger plan. */
  readonly upgradeUrl: string
  /** The operator's address, as a `mailto:` or `https:` URI; null if the operator names none. */
  readonly contact: string | null
}

export const Site = Context.Reference<SiteSettings>("vatproof/http/pipeline/SiteSettings", {
  defaultValue: () => ({ serviceName: "vatproof", publicUrl: "http://127.0.0.1:8080", upgradeUrl: "/plans", contact: null })
})

/** The path that the interface has for others, without a slash at the end: a proxy may put one before it. */
export const basePath = ({ publicUrl }: SiteSettings): string => new URL(publicUrl).pathname.replace(/\/$/u, "")

/** Where the documents that describe the interface are. */
export const documentPaths = {
  openApi: "/openapi.json",
  docs: "/docs",
  llms: "/llms.txt",
  llmsFull: "/llms-full.txt"
} as const
