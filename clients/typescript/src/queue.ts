// Scores that wait for a network, in a bounded queue that outlives the program.

import type { Tally } from "./client.js";
import { TallyError } from "./errors.js";
import { randomKey } from "./transport.js";
import type { NewScore, SubmittedRow } from "./types.js";

/** Where a queue keeps its scores: one text under one name. */
export interface QueueStorage {
  load(): string | null | Promise<string | null>;
  save(text: string): void | Promise<void>;
}

/** Forgets its scores when the program ends. */
export class MemoryStorage implements QueueStorage {
  #text: string | null = null;
  load(): string | null {
    return this.#text;
  }
  save(text: string): void {
    this.#text = text;
  }
}

/** Keeps its scores in the browser. Each queue needs a name of its own: two tabs with one name overwrite each other's scores. */
export class LocalStorage implements QueueStorage {
  readonly #name: string;
  constructor(name: string) {
    this.#name = name;
  }
  load(): string | null {
    return localStorage.getItem(this.#name);
  }
  save(text: string): void {
    localStorage.setItem(this.#name, text);
  }
}

/** A score that waits. */
export interface QueuedScore extends NewScore {
  board: string;
  /** However often it is sent, it counts once. */
  idempotency_key: string;
  /** When it was first sent, in milliseconds since 1970. */
  sent_at?: number;
}

/** A score as earlier releases of this package stored it, too: they named its key `id`. */
type StoredScore = QueuedScore & { id?: string };

function present({ id, ...score }: StoredScore): QueuedScore {
  return id === undefined ? score : { ...score, idempotency_key: id };
}

export interface FlushReport {
  /** Scores that count now. */
  sent: number;
  /** Scores that the server refused. */
  refused: number;
  /** Scores that still wait. */
  waiting: number;
  /** Why they wait. */
  error?: TallyError;
}

export interface QueueOptions {
  /** In memory by default. */
  storage?: QueueStorage;
  /** How many scores wait at most. 1,000. */
  max?: number;
  /** Gets each score that counts, with its rank. */
  onSent?: (score: QueuedScore, row: SubmittedRow) => void;
  /** Gets each score that is given up, with the reason. */
  onRefused?: (score: QueuedScore, error: TallyError) => void;
}

/** The server keeps the outcome of a key for 24 hours. An hour is left for clocks and for the way. */
const KNOWN_FOR = 23 * 3_600_000;
const BATCH = 500;
/** Errors of a row that pass. */
const PASSING = new Set(["contention", "overloaded", "store_unavailable", "outcome_unknown", "loading", "idempotency_in_progress"]);

/**
 * A queue of scores for players that are offline. `add` stores a score, `flush` sends what waits, in order and each once.
 *
 * A score without `at` counts when it arrives. With `at` it counts for the period in which it happened, if that period still takes
 * scores. A score that was sent and not answered for 23 hours is refused with `outcome_unknown`, because sending it again could
 * count it twice.
 */
export class SubmitQueue {
  readonly #tally: Tally;
  readonly #options: QueueOptions;
  readonly #storage: QueueStorage;
  readonly #max: number;
  #waiting: QueuedScore[] | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #flushing: Promise<FlushReport> | undefined;

  constructor(tally: Tally, options: QueueOptions = {}) {
    this.#tally = tally;
    this.#options = options;
    this.#storage = options.storage ?? new MemoryStorage();
    this.#max = options.max ?? 1_000;
  }

  /** Stores a score. If the queue is full, throws a `TallyError` of code `queue_full` and stores nothing. */
  add(board: string, score: NewScore): Promise<QueuedScore> {
    return this.#alone(async (waiting) => {
      if (waiting.length >= this.#max) {
        throw new TallyError("queue_full", `${waiting.length} scores wait, and the queue takes ${this.#max}; flush it first`);
      }
      const exact = typeof score.score === "bigint" ? String(score.score) : score.score;
      const queued: QueuedScore = { ...score, score: exact, board, idempotency_key: randomKey() };
      waiting.push(queued);
      try {
        await this.#save();
      } catch (error) {
        waiting.pop();
        throw error;
      }
      return queued;
    });
  }

  /** How many scores wait. */
  size(): Promise<number> {
    return this.#alone(async (waiting) => waiting.length);
  }

  /** Sends what waits. Never throws for a lost network: then `error` says why scores still wait. */
  flush(options: { signal?: AbortSignal } = {}): Promise<FlushReport> {
    this.#flushing ??= this.#flush(options.signal).finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Flushes every so many milliseconds, and when a browser is online again. Returns a function that ends this. */
  flushEvery(ms: number): () => void {
    const flush = (): void => void this.flush().catch(() => {});
    const timer = setInterval(flush, ms);
    globalThis.addEventListener?.("online", flush);
    return () => {
      clearInterval(timer);
      globalThis.removeEventListener?.("online", flush);
    };
  }

  async #flush(signal: AbortSignal | undefined): Promise<FlushReport> {
    const report: FlushReport = { sent: 0, refused: 0, waiting: 0 };
    while (!report.error) {
      const now = Date.now();
      const batch = await this.#next(now, report, signal);
      if (batch.length === 0) break;
      const fresh = batch.filter((score) => now - (score.sent_at ?? now) < KNOWN_FOR);
      const done = new Map<string, SubmittedRow | TallyError>();
      for (const score of batch) {
        const why = "it was sent more than 23 hours ago and not answered; read the player's score, then decide";
        if (!fresh.includes(score)) done.set(score.idempotency_key, new TallyError("outcome_unknown", why));
      }
      try {
        const rows = fresh.map(({ sent_at: _, ...row }) => row);
        const results = fresh.length > 0 ? await this.#tally.submitMany(rows, { signal }) : [];
        for (const [index, row] of results.entries()) {
          const score = fresh[index];
          if (!score) continue;
          const error = "error" in row ? new TallyError(row.error.code, row.error.detail) : undefined;
          if (error && PASSING.has(error.code)) report.error = error;
          else done.set(score.idempotency_key, error ?? (row as SubmittedRow));
        }
      } catch (error) {
        if (!(error instanceof TallyError)) throw error;
        report.error = error;
      }
      await this.#alone(async (waiting) => {
        this.#waiting = waiting.filter((score) => !done.has(score.idempotency_key));
        await this.#save();
      });
      for (const score of batch) {
        const end = done.get(score.idempotency_key);
        if (end instanceof TallyError) {
          report.refused += 1;
          this.#options.onRefused?.(score, end);
        } else if (end) {
          report.sent += 1;
          this.#options.onSent?.(score, end);
        }
      }
    }
    report.waiting = await this.size();
    return report;
  }

  /** The scores to send now, marked as sent. */
  async #next(now: number, report: FlushReport, signal: AbortSignal | undefined): Promise<QueuedScore[]> {
    const first = await this.#alone(async (waiting) => waiting[0]);
    if (!first) return [];
    // Without a server nothing is marked: a player that is offline for days has sent nothing.
    try {
      await this.#tally.health({ signal });
    } catch (error) {
      if (!(error instanceof TallyError)) throw error;
      report.error = error;
      return [];
    }
    return this.#alone(async (waiting) => {
      const next = waiting.slice(0, BATCH);
      for (const score of next) score.sent_at ??= now;
      // Before they are sent: after a crash the queue must know that they may have counted.
      await this.#save();
      return next;
    });
  }

  /** One change of the list at a time. */
  #alone<T>(work: (waiting: QueuedScore[]) => Promise<T>): Promise<T> {
    const turn = this.#turn.then(async () => work((this.#waiting ??= await this.#load())));
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #load(): Promise<QueuedScore[]> {
    try {
      const text = await this.#storage.load();
      return text === null ? [] : (JSON.parse(text) as StoredScore[]).map(present);
    } catch (error) {
      throw new TallyError("storage_failed", "the stored queue cannot be read; remove it to begin anew", { cause: error });
    }
  }

  async #save(): Promise<void> {
    try {
      await this.#storage.save(JSON.stringify(this.#waiting));
    } catch (error) {
      throw new TallyError("storage_failed", `the queue cannot be stored: ${String(error)}`, { cause: error });
    }
  }
}
