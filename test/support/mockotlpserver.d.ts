/** The parts of @elastic/mockotlpserver that Collector.ts uses: the package brings no types. */
declare module "@elastic/mockotlpserver" {
  export class MockOtlpServer {
    constructor(options: {
      readonly services: ReadonlyArray<"http" | "grpc" | "ui">
      readonly httpHostname: string
      readonly httpPort: number
      readonly logLevel: string
      readonly onTrace: (request: unknown) => void
      readonly onMetrics: (request: unknown) => void
      readonly onLogs: (request: unknown) => void
      readonly onRequest: (request: unknown) => void
    })
    readonly httpUrl: URL
    start(): Promise<void>
    close(): Promise<void>
  }
  export function normalizeTrace(request: unknown): unknown
  export function normalizeMetrics(request: unknown): unknown
  export function normalizeLogs(request: unknown): unknown
}
