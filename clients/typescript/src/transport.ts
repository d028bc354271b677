// Requests over fetch: a key for each change, bounded retries with backoff and jitter, and `Retry-After`.

import { TallyError, errorOf } from "./errors.js";

/** How a call that may succeed later is repeated. */
export interface RetryOptions {
  /** How often a request is sent at most. 8, which takes 8 to 16 s and outlasts a restart of a server. 1 turns retries off. */
  attempts?: number;
  /** Milliseconds before the second attempt; each wait is twice the last, and up to half of it is random. 200. */
  firstWait?: number;
  /** The longest of these waits, in milliseconds. 5,000. */
  longestWait?: number;
  /** The longest `Retry-After` that is obeyed, in milliseconds. A longer one ends the call with its error. 30,000. */
  longestRetryAfter?: number;
}

export interface TallyOptions {
  /** The address of the server, such as `https://tally.example.com`. */
  url: string;
  /** An API key (`tally_…`) or the token of a member that signed in. Keep API keys out of browsers and games. */
  key?: string | undefined;
  /** Milliseconds for one attempt, until its whole answer is there. 10,000. */
  timeout?: number;
  retry?: RetryOptions;
  /** How answers have scores: `string` keeps integers beyond 2^53 exact. `number`. */
  int64?: "number" | "string";
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch;
}

/** What every call takes. */
export interface CallOptions {
  /** Ends the call, and its retries, with a `TallyError` of code `aborted`. */
  signal?: AbortSignal | undefined;
  /** Names a change: the same key with the same request counts once, for 24 hours. Without it, each call has a random key. */
  idempotencyKey?: string | undefined;
  /** The staff player of a contest that a server key acts for. */
  actingPlayer?: string | undefined;
}

export type Query = Record<string, string | number | boolean | undefined>;

export interface RequestOptions extends CallOptions {
  query?: Query | undefined;
  body?: unknown;
  /** Whether this call changes something. By default all but `GET` do. */
  changes?: boolean;
}

/** Statuses after which the same request may succeed. Those of 409 and 429 count with a `Retry-After` only. */
const AGAIN = new Set([408, 409, 429, 502, 503, 504]);

export class Transport {
  readonly timeout: number;
  readonly #url: string;
  readonly #options: TallyOptions;
  readonly #retry: Required<RetryOptions>;
  key: string | undefined;

  constructor(options: TallyOptions) {
    if (!/^https?:\/\//.test(options.url)) {
      throw new TypeError(`\`url\` is ${JSON.stringify(options.url)}; it begins with http:// or https://`);
    }
    this.#url = options.url.replace(/\/+$/, "");
    this.#options = options;
    this.key = options.key;
    this.timeout = options.timeout ?? 10_000;
    const usual = { attempts: 8, firstWait: 200, longestWait: 5_000, longestRetryAfter: 30_000 };
    this.#retry = { ...usual, ...options.retry };
  }

  /** Sends a request until it has its answer; returns the body of the answer. */
  async request<T>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
    const headers: Record<string, string> = { accept: "application/json" };
    if (options.changes ?? method !== "GET") headers["idempotency-key"] = options.idempotencyKey ?? randomKey();
    if (options.actingPlayer !== undefined) headers["tally-acting-player"] = encodeURIComponent(options.actingPlayer);
    let body: string | undefined;
    if (options.body !== undefined) {
      headers["content-type"] = "application/json";
      // A bigint has no JSON; the server takes integers as strings, too.
      body = JSON.stringify(options.body, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
    }
    const url = this.address(path, options.query);
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once<T>(url, { method, headers: { ...headers, ...this.common() }, body }, options.signal);
      } catch (error) {
        if (!(error instanceof TallyError)) throw error;
        const wait = attempt < this.#retry.attempts ? this.waitAfter(error, attempt) : undefined;
        if (wait === undefined) throw error;
        await sleep(wait, options.signal);
      }
    }
  }

  /** The headers of every request. */
  common(): Record<string, string> {
    return {
      ...(this.key !== undefined && { authorization: `Bearer ${this.key}` }),
      ...(this.#options.int64 === "string" && { "tally-int64": "string" }),
    };
  }

  address(path: string, query: Query = {}): string {
    const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
    const search = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
    return `${this.#url}${path}${search && `?${search}`}`;
  }

  /** Sends one request; every failure is a `TallyError`. */
  async open(url: string, init: RequestInit, signal: AbortSignal): Promise<Response> {
    const send = this.#options.fetch ?? globalThis.fetch;
    let response: Response;
    try {
      response = await send(url, { ...init, signal });
    } catch (error) {
      throw failed(url, error, signal);
    }
    if (!response.ok) throw await errorOf(response);
    return response;
  }

  /** Milliseconds until the next attempt after this error, or nothing if no attempt will help. */
  waitAfter(error: TallyError, attempt: number): number | undefined {
    const { firstWait, longestWait, longestRetryAfter } = this.#retry;
    const lost = error.code === "network_error" || error.code === "timeout";
    if (!lost && !AGAIN.has(error.status)) return undefined;
    if ((error.status === 409 || error.status === 429) && error.retryAfter === undefined) return undefined;
    const asked = (error.retryAfter ?? 0) * 1_000;
    if (asked > longestRetryAfter) return undefined;
    const backoff = Math.min(longestWait, firstWait * 2 ** (attempt - 1));
    return Math.max(asked, backoff / 2) + (Math.random() * backoff) / 2;
  }

  async #once<T>(url: string, init: Omit<RequestInit, "body"> & { body: string | undefined }, signal?: AbortSignal): Promise<T> {
    const limit = new AbortController();
    const stop = (): void => limit.abort(signal?.reason);
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
    const late = setTimeout(() => limit.abort(new TallyError("timeout", `no answer in ${this.timeout} ms: ${url}`)), this.timeout);
    const { body, ...rest } = init;
    try {
      const response = await this.open(url, body === undefined ? rest : { ...rest, body }, limit.signal);
      let text: string;
      try {
        text = await response.text();
      } catch (error) {
        throw failed(url, error, limit.signal);
      }
      if (text === "") return undefined as T;
      try {
        return JSON.parse(text) as T;
      } catch {
        throw new TallyError("not_tally", `${url} answered with something else than JSON: ${text.slice(0, 200)}`);
      }
    } finally {
      clearTimeout(late);
      signal?.removeEventListener("abort", stop);
    }
  }
}

/** The error of a request that has no answer. */
function failed(url: string, error: unknown, signal: AbortSignal): TallyError {
  if (signal.aborted && signal.reason instanceof TallyError) return signal.reason;
  if (signal.aborted) return new TallyError("aborted", `the caller gave up: ${url}`, { cause: signal.reason });
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const why = cause instanceof Error ? cause.message : String(cause);
  return new TallyError("network_error", `no answer from ${url}: ${why}`, { cause: error });
}

/** Waits, and ends early with `aborted`. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(new TallyError("aborted", "the caller gave up between two attempts", { cause: signal?.reason }));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

/** 128 random bits. `crypto.randomUUID` is missing on pages without TLS, and all of `crypto` in Node 18. A key is no secret. */
export function randomKey(): string {
  const bytes = new Uint8Array(16);
  if (globalThis.crypto) crypto.getRandomValues(bytes);
  else for (const at of bytes.keys()) bytes[at] = Math.random() * 256;
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
