// The one error class of the package.

/** A field or parameter of a request that the server refused. */
export interface FieldError {
  /** Where it is in the body, such as `/periods/0/schedule`. */
  pointer: string;
  code: string;
  detail: string;
}

/**
 * A call that failed. `code` is for programs, `message` for people.
 *
 * The codes of the server are in its reference (`/docs`). The package adds `network_error` (no answer came), `timeout` (no answer
 * came in time), `aborted` (the caller's signal), `not_tally` (something else answered), `queue_full`, `outcome_unknown` and
 * `storage_failed` (of a `SubmitQueue`).
 */
export class TallyError extends Error {
  override readonly name = "TallyError";
  /** A stable word, such as `leaderboard_not_found`. */
  readonly code: string;
  /** The HTTP status; 0 if no server answered. */
  readonly status: number;
  /** The id under which the server's log has this request. */
  readonly requestId: string | undefined;
  /** Seconds after which the server wants to be asked again. */
  readonly retryAfter: number | undefined;
  /** Every wrong field, of 400 and `invalid_definition`. */
  readonly errors: readonly FieldError[];
  /** The whole body of the error: some codes have more fields, such as `left` or `state`. */
  readonly problem: Readonly<Record<string, unknown>>;

  constructor(
    code: string,
    message: string,
    more: {
      status?: number;
      requestId?: string | undefined;
      retryAfter?: number | undefined;
      problem?: Record<string, unknown>;
      cause?: unknown;
    } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    this.status = more.status ?? 0;
    this.requestId = more.requestId;
    this.retryAfter = more.retryAfter;
    this.problem = more.problem ?? {};
    this.errors = Array.isArray(this.problem["errors"]) ? (this.problem["errors"] as FieldError[]) : [];
  }
}

/** The error that a response says. */
export async function errorOf(response: Response): Promise<TallyError> {
  const text = await response.text().catch(() => "");
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  const more = {
    status: response.status,
    requestId: response.headers.get("x-request-id") ?? undefined,
    retryAfter: Number.isFinite(seconds) ? seconds : undefined,
  };
  let problem: unknown;
  try {
    problem = JSON.parse(text);
  } catch {
    problem = undefined;
  }
  if (typeof problem === "object" && problem !== null && "code" in problem && "detail" in problem) {
    // A page of another origin sees no headers.
    if ("request_id" in problem) more.requestId ??= String(problem.request_id);
    return new TallyError(String(problem.code), String(problem.detail), { ...more, problem: { ...problem } });
  }
  const what = text.trim().slice(0, 200) || response.statusText;
  const message = `${response.url} answered ${response.status}, and not as a tally server does: ${what}`;
  return new TallyError("not_tally", message, more);
}
