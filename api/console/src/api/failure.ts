import type { Problem } from './types';

/** A request that failed, with what the server said about it. */
export class Failure extends Error {
  override readonly name = 'Failure';

  constructor(
    /** HTTP status; 0 when no answer arrived. */
    readonly status: number,
    /** Stable word for programs; `network` when no answer arrived. */
    readonly code: string,
    /** The server's sentence, in English. */
    message: string,
    /** Seconds after which it may work. */
    readonly retryAfter?: number,
    /** The answer's other fields. */
    readonly details: Readonly<Record<string, unknown>> = {},
    /** Id of the request in the server's log. */
    readonly requestId?: string,
  ) {
    super(message);
  }

  /** The refused values, of a form or of the configuration. */
  get problems(): Problem[] {
    const { problems } = this.details;
    return Array.isArray(problems) ? (problems as Problem[]) : [];
  }

  /** Reads a failed answer, whatever its content. */
  static async fromResponse(response: Response): Promise<Failure> {
    let body: Record<string, unknown> = {};
    try {
      const parsed: unknown = await response.json();
      if (typeof parsed === 'object' && parsed !== null) body = parsed as Record<string, unknown>;
    } catch {
      // A proxy's answer may be no JSON: the status has to do.
    }
    const { code, error, success: _, ...details } = body;
    const seconds = Number(response.headers.get('Retry-After') ?? NaN);
    return new Failure(
      response.status,
      typeof code === 'string' ? code : 'unexpected',
      typeof error === 'string' ? error : response.statusText,
      Number.isFinite(seconds) ? seconds : undefined,
      details,
      response.headers.get('X-Request-Id') ?? undefined,
    );
  }

  /** Takes what was thrown as a failure: an answer that did not arrive has the code `network`. */
  static from(thrown: unknown): Failure {
    if (thrown instanceof Failure) return thrown;
    return new Failure(0, 'network', thrown instanceof Error ? thrown.message : String(thrown));
  }
}
