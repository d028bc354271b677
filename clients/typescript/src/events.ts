// Event streams that go on where they were after a lost connection.

import { TallyError } from "./errors.js";
import { type Transport, sleep } from "./transport.js";

/** One event. `type` says what `data` is. */
export interface TallyEvent<Type extends string = string, Data = unknown> {
  type: Type;
  /** The position of this event. A stream with it as `lastEventId` goes on behind this event. */
  id: string | undefined;
  data: Data;
}

export interface EventOptions {
  /** Where to go on: the `id` of the last event, or `lastEventId` of an earlier stream. Without it, the stream begins now. */
  lastEventId?: string | undefined;
  /** Ends the stream, without an error. */
  signal?: AbortSignal | undefined;
}

/** The server sends at least a comment every 15 seconds. */
const SILENCE_MAX = 45_000;
const RECONNECT_AFTER = 2_000;
/** Statuses that a later attempt does not change. */
const FINAL = new Set([400, 401, 403, 404, 405]);

/**
 * The events of a leaderboard, a contest or a member, for `for await`. It connects when the loop begins, connects again by itself
 * with the last id, and yields each stored event once and in order. It ends when its signal does or the loop is left, and throws a
 * `TallyError` if the server will not send it any more events (401, 403, 404).
 */
export class EventStream<Event extends TallyEvent> implements AsyncIterable<Event> {
  /** The position of the last event that was yielded, or where the stream began. Store it to go on after a restart. */
  lastEventId: string | undefined;
  readonly #transport: Transport;
  readonly #url: string;
  readonly #signal: AbortSignal | undefined;

  constructor(transport: Transport, path: string, options: EventOptions = {}) {
    this.#transport = transport;
    this.#url = transport.address(path);
    this.#signal = options.signal;
    this.lastEventId = options.lastEventId;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event, void, undefined> {
    let wait = RECONNECT_AFTER;
    const stopped = (): boolean => this.#signal?.aborted ?? false;
    while (!stopped()) {
      const limit = new AbortController();
      const stop = (): void => limit.abort(this.#signal?.reason);
      this.#signal?.addEventListener("abort", stop, { once: true });
      let silence = setTimeout(() => limit.abort(), SILENCE_MAX);
      const heard = (): void => {
        clearTimeout(silence);
        silence = setTimeout(() => limit.abort(), SILENCE_MAX);
      };
      let again = wait;
      try {
        for await (const block of this.#blocks(limit.signal, heard)) {
          if (block.retry !== undefined) again = wait = block.retry;
          // An empty id means that there is none to go on from.
          if (block.id !== undefined) this.lastEventId = block.id === "" ? undefined : block.id;
          if (block.data === undefined) continue;
          yield { type: block.type, id: this.lastEventId, data: JSON.parse(block.data) as unknown } as Event;
        }
      } catch (error) {
        if (!(error instanceof TallyError)) throw error;
        if (FINAL.has(error.status)) throw error;
        again = Math.max(wait, (error.retryAfter ?? 0) * 1_000);
      } finally {
        clearTimeout(silence);
        this.#signal?.removeEventListener("abort", stop);
        limit.abort();
      }
      // Many streams that broke together come back one after the other.
      if (!stopped()) await sleep(again * (1 + Math.random() / 2), this.#signal).catch(() => {});
    }
  }

  /** The blocks of one connection. */
  async *#blocks(signal: AbortSignal, heard: () => void): AsyncGenerator<Block, void, undefined> {
    const headers: Record<string, string> = { accept: "text/event-stream", ...this.#transport.common() };
    if (this.lastEventId !== undefined) headers["last-event-id"] = this.lastEventId;
    const response = await this.#transport.open(this.#url, { headers }, signal);
    const reader = response.body?.getReader();
    const decoder = new TextDecoder();
    let text = "";
    while (reader) {
      // A connection that breaks is no error: the next one goes on.
      const { value, done } = await reader.read().catch(() => ({ value: undefined, done: true }));
      if (done || value === undefined) return;
      heard();
      text = (text + decoder.decode(value, { stream: true })).replace(/\r\n/g, "\n");
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) yield parse(block);
    }
  }
}

interface Block {
  type: string;
  id?: string;
  retry?: number;
  data?: string;
}

/** The fields between two empty lines. */
export function parse(text: string): Block {
  const block: Block = { type: "message" };
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") block.type = value;
    else if (name === "id") block.id = value;
    else if (name === "retry" && /^\d+$/.test(value)) block.retry = Number(value);
    else if (name === "data") block.data = block.data === undefined ? value : `${block.data}\n${value}`;
  }
  return block;
}
