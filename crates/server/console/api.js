// Requests to the server: the public HTTP interface and nothing else.
//
// The key is kept for this tab only. A change carries an idempotency key that stays the same until its response arrives.
// A click that is repeated after a broken connection therefore counts once.

import { t } from "./texts.js";

const KEY = "tally.key";

let memory = null;

/** The key of this tab, if one was given. */
export function key() {
  try {
    return sessionStorage.getItem(KEY) ?? memory;
  } catch {
    return memory;
  }
}

/** Uses this key from now on, or none. */
export function useKey(value) {
  memory = value;
  try {
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
  } catch {
    // The key stays in memory until the page is loaded again.
  }
  window.dispatchEvent(new CustomEvent("tally:key"));
}

let acting = null;

/** Acts as this player of the staff on contests, until `signal`; without a player, the API key acts. */
export function actAs(player, signal) {
  acting = player || null;
  signal.addEventListener("abort", () => (acting = null));
}

/** A failed request: the error that the server returned, or no response; and whether it was to change something. */
export class Problem extends Error {
  constructor(status, body, request, changing = false) {
    super(body?.detail ?? body?.title ?? t("common.answered", { status: String(status) }));
    this.status = status;
    this.code = body?.code ?? "unknown";
    this.body = body ?? {};
    this.request = body?.request_id ?? request ?? null;
    this.fields = body?.errors ?? [];
    this.changing = changing;
  }
}

/** Escapes one segment of a path. */
export function part(text) {
  return encodeURIComponent(text);
}

/** Sends a request and returns the JSON of the response; anything but success is a `Problem`. */
export async function ask(method, path, { body, type = "application/json", idempotent, signal, raw } = {}) {
  const headers = { "tally-int64": "string" };
  const present = key();
  if (present) headers.authorization = `Bearer ${present}`;
  if (body !== undefined) headers["content-type"] = type;
  if (idempotent) headers["idempotency-key"] = idempotent;
  if (acting && path.startsWith("/v1/contests/")) headers["tally-acting-player"] = part(acting);
  let answer;
  try {
    answer = await fetch(path, { method, headers, body, signal, cache: "no-store", redirect: "error", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    window.dispatchEvent(new CustomEvent("tally:unreachable"));
    throw new Problem(0, { code: "unreachable", detail: t("common.unreachable") }, null, method !== "GET");
  }
  const text = await answer.text();
  if (answer.ok) return raw ? text : text && JSON.parse(text);
  let problem = null;
  try {
    problem = JSON.parse(text);
  } catch {
    // A proxy in between answered.
  }
  if (["loading", "draining"].includes(problem?.code)) window.dispatchEvent(new CustomEvent("tally:unready"));
  if (answer.status === 401) window.dispatchEvent(new CustomEvent("tally:unauthorized", { detail: { present, text: problem?.detail } }));
  throw new Problem(answer.status, problem, answer.headers.get("x-request-id"), method !== "GET");
}

/** Reads; `query` leaves out what is null or empty. */
export function get(path, query = {}, signal) {
  return ask("GET", withQuery(path, query), { signal });
}

/** Reads text. */
export function getText(path, signal) {
  return ask("GET", path, { signal, raw: true });
}

/** A path with a query, which leaves out what is null or empty. */
export function withQuery(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(given).toString().replaceAll("+", "%20");
  return text ? `${path}?${text}` : path;
}

/** Idempotency keys of changes without a response yet. */
const open = new Map();

/** Changes something. */
export async function change(method, path, body) {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const name = `${method} ${path} ${text}`;
  const idempotent = open.get(name) ?? random();
  open.set(name, idempotent);
  try {
    const answer = await ask(method, path, { body: text, idempotent });
    open.delete(name);
    window.dispatchEvent(new CustomEvent("tally:changed"));
    return answer;
  } catch (error) {
    const known = error instanceof Problem && error.status >= 400 && error.status < 500 && error.status !== 409;
    if (known) open.delete(name);
    throw error;
  }
}

/** 128 random bits; works without a secure context, too. */
function random() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/**
  * Reads a list page by page to its end, or to a number of pages; `each` gets the items of a page, and ends the reading with `false`.
  * Returns whether the list was read to its end.
 */
export async function walk(path, query, name, each, signal, pagesMax = Infinity) {
  let cursor = null;
  for (let pages = 0; pages < pagesMax; pages += 1) {
    const page = await get(path, { ...query, limit: 1000, cursor }, signal);
    const more = await each(page[name], page);
    cursor = page.next_cursor ?? null;
    if (!cursor) return true;
    if (more === false) return false;
  }
  return false;
}

/** Empty pages that a search reads in a row. Each stands for thousands of rows that were looked through. */
const EMPTY_PAGES_MAX = 10;

/**
 * The next page that has items: `read(cursor)` reads one. A request reads a bounded part, so a page may be empty and have a cursor.
 * After a number of them the last one is the answer. `searched` is how many pages were read.
 */
export async function somePage(read, cursor = null) {
  let page = await read(cursor);
  let searched = 1;
  for (; searched < EMPTY_PAGES_MAX && page.items.length === 0 && page.next_cursor; searched += 1) page = await read(page.next_cursor);
  return { ...page, searched };
}

/** Paths whose answers are kept at most. */
const KEPT = 500;

/** `get` of paths that many rows ask for: each is read once with a key, until it is forgotten. */
export function kept() {
  const known = new Map();
  window.addEventListener("tally:key", () => known.clear());
  const read = (path) => {
    if (!known.has(path)) {
      if (known.size >= KEPT) known.clear();
      const asked = get(path);
      asked.catch(() => known.delete(path));
      known.set(path, asked);
    }
    return known.get(path);
  };
  return { read, forget: (path) => known.delete(path), clear: () => known.clear() };
}
