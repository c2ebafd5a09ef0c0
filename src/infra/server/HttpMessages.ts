/** Node's request and response with this server's additions. */
import { IncomingMessage, type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from "node:http"
import { Predicate } from "effect"

/** Node's request with two additions: `100 Continue` is sent when the body is first read, and parsing stops on a closed connection. */
export class HttpRequest extends IncomingMessage {
  private expecting: ServerResponse | undefined
  private upgrades = false

  /**
   * True for a request that upgrades its connection, so that Node stops parsing the connection. Also true if the connection is
   * closed: Node would otherwise parse up to 64 kB of further requests and keep them until the event loop iteration ends.
   */
  get upgrade() {
    return this.upgrades || this.socket.destroyed
  }

  set upgrade(value: boolean) {
    this.upgrades = value
  }

  /** True if the service waits for the client to send more of the body. False while received bytes are unread, or reading is paused. */
  get awaitsBody() {
    return !this.complete && this.expecting === undefined && this.readableLength === 0 && !this.socket.isPaused()
  }

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

/**
 * Returns the class of responses that close their connections as soon as `isClosing` returns true. The rest of a body is not read once
 * Effect's server closes its connection with the response. That server sends FIN, and leaves the client 500 ms to read the response.
 */
export const closingResponse = (isClosing: () => boolean) =>
  class ClosingResponse extends ServerResponse<HttpRequest> {
    override writeHead(status: number, message?: string | Headers, headers?: Headers) {
      if (isClosing()) this.shouldKeepAlive = false
      const sent = typeof message === "object" ? message : headers
      if (Predicate.hasProperty(sent, "connection") && sent.connection === "close") this.req.pause()
      return typeof message === "object" ? super.writeHead(status, message) : super.writeHead(status, message, headers)
    }
  }
