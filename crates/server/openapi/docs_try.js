// The form of an operation that sends the request from this page, and shows what the server answers.
//
// The key is that of the console in the same tab. A change has an idempotency key, which stays the same until an answer comes.
// Every method but GET asks first: the example in a body may move money, and a tunnel gives the server of players a local address.

import { examplesOf, make, sample, written } from "./docs_parts.js";

const KEY = "tally.key";

/** The headers of an answer that are worth a look. */
const HEADERS = ["x-request-id", "content-type", "retry-after", "idempotent-replayed", "location", "allow"];

/** The most characters of an answer that are shown. */
const SHOWN_MAX = 200000;

let memory = "";

function key() {
  try {
    return sessionStorage.getItem(KEY) ?? memory;
  } catch {
    return memory;
  }
}

/** Lets the field of the page show and change the key of this tab. */
export function keyField(field) {
  field.value = key();
  field.addEventListener("input", () => {
    memory = field.value.trim();
    try {
      if (memory) sessionStorage.setItem(KEY, memory);
      else sessionStorage.removeItem(KEY);
    } catch {
      // The key stays in memory until the page is loaded again.
    }
  });
}

/** 128 random bits; works without a secure context, too. */
function random() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `docs-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** JSON with a line for each field. It only adds space, so that long integers keep their digits. */
export function spread(text) {
  const parts = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  let [shown, depth] = ["", 0];
  const line = () => "\n" + "  ".repeat(depth);
  parts.forEach((part, at) => {
    const first = ["{", "["].includes(parts[at - 1]);
    if (part === "}" || part === "]") {
      depth -= 1;
      shown += (first ? "" : line()) + part;
      return;
    }
    shown += (first ? line() : "") + part;
    if (part === "{" || part === "[") depth += 1;
    else if (part === ",") shown += line();
    else if (part === ":") shown += " ";
  });
  return shown;
}

/** A field with its label. */
function field(id, name, value, hint, tag = "input") {
  const input = make(tag, { id, name, autocomplete: "off", spellcheck: "false", placeholder: hint });
  input.value = value;
  return { input, row: make("div", { class: "field" }, make("label", { for: id }, name), input) };
}

/** What a parameter is without being given, for an empty field. */
const hintOf = ({ schema = {}, example }) => String(example ?? schema.default ?? (schema.enum ?? []).join(", "));

/** The path with its parameters and its query. */
function addressOf(path, fields) {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(fields.find((one) => one.name === name).input.value));
  const query = fields.filter((one) => one.in === "query" && one.input.value !== "");
  const text = query.map((one) => `${one.name}=${encodeURIComponent(one.input.value)}`).join("&");
  return text ? `${filled}?${text}` : filled;
}

/** Reads an answer as it comes; a stream does so until it is stopped. */
async function read(answer, show) {
  const reader = answer.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (reader && text.length < SHOWN_MAX) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
    if (answer.headers.get("content-type")?.startsWith("text/event-stream")) show(text);
  }
  if (text.length >= SHOWN_MAX) await reader.cancel();
  return text;
}

/** The status, the headers, the time and the body of an answer. */
function outcome(answer, took, text, idempotent) {
  const kind = answer.status < 400 ? "ok" : answer.status < 500 ? "bad" : "broken";
  const known = HEADERS.filter((name) => answer.headers.has(name)).map((name) => `${name}: ${answer.headers.get(name)}`);
  const json = /[/+]json/.test(answer.headers.get("content-type") ?? "") && text.length < SHOWN_MAX;
  const cut = text.length >= SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}\n… (the rest is not shown)` : text;
  return [
    make("p", {}, make("span", { class: `status ${kind}` }, String(answer.status)), ` ${answer.statusText} in ${took} ms`),
    idempotent ? make("p", { class: "soft" }, "Sent with ", make("code", {}, `Idempotency-Key: ${idempotent}`)) : "",
    known.length ? make("pre", { class: "headers" }, known.join("\n")) : "",
    text ? sample("Body of the answer", json ? spread(text) : cut) : make("p", { class: "soft" }, "No body."),
  ].flat();
}

/** The fields of a form: its parameters, and the body if it has one. */
function fieldsOf(operation, parameters) {
  const shown = parameters.filter((one) => one.name !== "Idempotency-Key");
  const fields = shown.map((one) => {
    const value = one.required ? String(one.example ?? "") : "";
    return { ...one, ...field(`try-${operation.operationId}-${one.name}`, one.name, value, hintOf(one)) };
  });
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const example = media ? written(examplesOf(media)[0]?.[1] ?? "") : "";
  const body = type && field(`try-${operation.operationId}-body`, "Body", example, "no body", "textarea");
  if (body) body.input.setAttribute("rows", String(Math.min(16, example.split("\n").length + 1)));
  return { fields, type, body };
}

/** The form of an operation; it is made when it is opened. */
export function tryIt(path, method, operation, parameters) {
  const details = make("details", { class: "more try" }, make("summary", {}, "Try it"));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(...form(path, method, operation, parameters));
  });
  return details;
}

function form(path, method, operation, parameters) {
  const { fields, type, body } = fieldsOf(operation, parameters);
  const isOpen = operation.security && !operation.security.length;
  const isChange = parameters.some((one) => one.name === "Idempotency-Key");
  const button = (text, kind) => make("button", { type: kind ?? "button" }, text);
  const [send, stop, yes, no] = [button("Send", "submit"), button("Stop"), button("Yes, send it"), button("No")];
  const question = make("p", { class: "question", hidden: true }, `This ${method === "delete" ? "deletes" : "may change the data of this server"}. Send it? `, yes, " ", no);
  const place = make("div", { class: "outcome", role: "status" });
  // The idempotency key of a request without an answer yet, and what was sent under it.
  let open = { request: "", idempotent: "" };

  const transmit = async () => {
    const [address, text] = [addressOf(path, fields), body?.input.value];
    const headers = {};
    if (key() && !isOpen) headers.authorization = `Bearer ${key()}`;
    for (const one of fields) if (one.in === "header" && one.input.value !== "") headers[one.name] = one.input.value;
    if (text) headers["content-type"] = type;
    const request = JSON.stringify([address, text]);
    if (isChange && open.request !== request) open = { request, idempotent: random() };
    if (isChange) headers["idempotency-key"] = open.idempotent;
    const [abort, started] = [new AbortController(), performance.now()];
    stop.onclick = () => abort.abort();
    [send.disabled, stop.hidden] = [true, false];
    place.replaceChildren("Waiting for the answer.");
    try {
      const options = { cache: "no-store", redirect: "error", credentials: "omit", signal: abort.signal };
      const answer = await fetch(address, { method: method.toUpperCase(), headers, body: text || undefined, ...options });
      const show = (part) => place.replaceChildren(make("pre", { tabindex: "0" }, part));
      const got = await read(answer, show);
      place.replaceChildren(...outcome(answer, Math.round(performance.now() - started), got, isChange && open.idempotent));
      open = { request: "", idempotent: "" };
    } catch (error) {
      if (error.name === "AbortError") place.append(make("p", { class: "soft" }, "Stopped."));
      else place.replaceChildren(`No answer came: ${error.message}`);
    }
    [send.disabled, stop.hidden] = [false, true];
  };

  const ask = (asked) => {
    [question.hidden, send.hidden] = [!asked, asked];
    (asked ? no : send).focus();
  };
  yes.addEventListener("click", () => {
    ask(false);
    transmit();
  });
  no.addEventListener("click", () => ask(false));
  stop.hidden = true;
  const made = make("form", {}, fields.map((one) => one.row), body ? body.row : "", send, " ", stop, question);
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    if (method === "get") transmit();
    else ask(true);
  });
  return [made, place];
}
