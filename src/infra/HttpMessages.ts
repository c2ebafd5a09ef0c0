/** Node's request and response with what this server adds to them. */
import { IncomingMessage, type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from "node:http"

/** Answers `Expect: 100-continue` when its body is first read. A request that is refused before keeps its body. */
export class ContinuingRequest extends IncomingMessage {
  private expecting: ServerResponse | undefined

  expectContinue(response: ServerResponse) {
    this.expecting = response
  }

  override _read(size: number) {
    if (this.expecting?.headersSent === false) this.expecting.writeContinue()
    this.expecting = undefined
    super._read(size)
  }
}

type Headers = OutgoingHttpHeaders | Array<OutgoingHttpHeader>

/** Makes the class of responses that close their connections as soon as `isClosing`. */
export const closingResponse = (isClosing: () => boolean) =>
  class ClosingResponse extends ServerResponse<ContinuingRequest> {
    override writeHead(status: number, message?: string | Headers, headers?: Headers) {
      if (isClosing()) this.shouldKeepAlive = false
      return typeof message === "object" ? super.writeHead(status, message) : super.writeHead(status, message, headers)
    }
  }
