// Shows /openapi.json: operations by tag, with parameters, schemas, examples, a curl line and a form that sends the request.
// Text goes into the page as text only, never as markup, so the document cannot run anything here.

import { examplesOf, inline, make, paragraphs, sample, table, written } from "./docs_parts.js";
import { keyField, tryIt } from "./docs_try.js";

const METHODS = ["get", "put", "post", "patch", "delete"];
const DEPTH_MAX = 5;
let doc;

/** The target of a `$ref`; the fields beside the `$ref` override it. */
function resolve(thing) {
  if (!thing || !thing.$ref) return thing;
  const target = thing.$ref.slice(2).split("/").reduce((at, part) => at[part.replaceAll("~1", "/")], doc);
  const { $ref, ...beside } = thing;
  return { ...resolve(target), ...beside };
}

/** The last part of a `$ref`. */
const nameOf = (thing) => (thing && thing.$ref ? thing.$ref.split("/").pop() : undefined);

/** The alternatives of a schema. */
const choices = (schema) => schema.oneOf || schema.anyOf;

/** A schema's type in a few words. */
function typeOf(given) {
  const schema = resolve(given) || {};
  if (choices(schema)) return choices(schema).map(typeOf).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const type = [].concat(schema.type || "anything").join(" or ");
  if (schema.type === "array") return "array of " + typeOf(schema.items);
  const name = schema.type === "object" ? nameOf(given) : undefined;
  return name || (schema.format ? `${type} (${schema.format})` : type);
}

/** What a value must satisfy, in words. */
function limits(given) {
  const schema = resolve(given) || {};
  const told = [];
  const tell = (word, value) => value !== undefined && told.push([word + " ", make("code", {}, String(value))]);
  if (schema.enum) told.push(["one of ", schema.enum.map((one, at) => [at ? ", " : "", make("code", {}, String(one))])]);
  if (schema.default !== undefined) tell("default", JSON.stringify(schema.default));
  // The bounds of 64-bit integers are not exact in JavaScript; their format says them already.
  if (schema.format !== "int64") {
    tell("least", schema.minimum);
    tell("most", schema.maximum);
  }
  tell("shortest", schema.minLength);
  tell("longest", schema.maxLength);
  tell("fewest items", schema.minItems);
  tell("most items", schema.maxItems);
  tell("pattern", schema.pattern);
  return told.length ? make("p", { class: "soft" }, told.map((one, at) => [at ? "; " : "", one]).flat(4)) : undefined;
}

/** The objects that a schema contains directly: itself, its items or its alternatives. */
function objectsOf(given) {
  const schema = resolve(given) || {};
  if (choices(schema)) return choices(schema).flatMap(objectsOf);
  if (schema.type === "array") return objectsOf(schema.items);
  return schema.type === "object" && schema.properties ? [[nameOf(given), schema]] : [];
}

/** One row of a table: name, type, and its description. */
function row(name, required, schema, description, depth) {
  const inner = depth < DEPTH_MAX ? objectsOf(schema) : [];
  const more = inner.map(([title, one]) =>
    make("details", { class: "more" }, make("summary", {}, "Fields of " + (title || name)), fields(one, depth + 1)));
  return make("tr", {},
    make("th", { scope: "row" }, make("code", {}, name), required ? make("div", { class: "need" }, "required") : ""),
    make("td", { class: "type" }, typeOf(schema)),
    make("td", {}, paragraphs(description), limits(schema), more));
}

/** The fields of an object's schema. */
function fields(schema, depth) {
  const required = new Set(schema.required || []);
  const rows = Object.entries(schema.properties).map(([name, one]) =>
    row(name, required.has(name), one, (resolve(one) || {}).description, depth));
  return make("div", { class: "fields" }, table(["Field", "Type", "Description"], rows));
}

/** A schema as far as it can be shown. */
function shown(given) {
  const objects = objectsOf(given);
  if (!objects.length) return [make("p", { class: "soft" }, typeOf(given)), limits(given)];
  return objects.map(([name, schema]) => [
    make("h4", {}, name || "Object", resolve(given).type === "array" ? " (each item)" : ""),
    paragraphs(schema.description), fields(schema, 0)]);
}

const quoted = (text) => "'" + text.replaceAll("'", "'\\''") + "'";

/** The command that makes this request with the examples. */
function curl(path, method, operation, parameters) {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) =>
    encodeURIComponent((parameters.find((one) => one.in === "path" && one.name === name) || {}).example || name));
  const parts = ["curl " + (method === "get" ? "" : `-X ${method.toUpperCase()} `) + quoted(location.origin + filled)];
  if (!operation.security || operation.security.length) parts.push('-H "Authorization: Bearer $TALLY_KEY"');
  if (parameters.some((one) => one.name === "Idempotency-Key")) parts.push("-H 'Idempotency-Key: example-1'");
  const [type, media] = Object.entries((operation.requestBody || {}).content || {})[0] || [];
  if (type && operation.requestBody.required !== false || media && Object.keys(media.example || {}).length) {
    const body = examplesOf(media)[0][1];
    parts.push(`-H 'Content-Type: ${type}'`);
    parts.push("--data-binary " + quoted(typeof body === "string" ? body : JSON.stringify(body)));
  }
  return parts.join(" \\\n  ");
}

function requestBody(body) {
  if (!body) return [];
  return Object.entries(body.content).map(([type, media]) => {
    const lines = media["x-tally-lines"];
    const schemas = lines ? [lines.first, lines.rest] : [media.schema];
    return [make("h3", {}, "Body ", make("span", { class: "soft" }, type, body.required ? "" : ", may be left out")),
      paragraphs(body.description), schemas.map(shown),
      examplesOf(media).map(([title, value]) => sample(title, written(value)))];
  });
}

/** The codes that a problem's schema allows. */
const codesOf = (schema) => (schema && schema.properties && schema.properties.code && schema.properties.code.enum) || [];

function answer(status, given) {
  const response = resolve(given);
  const kind = status < 400 ? "ok" : status < 500 ? "bad" : "broken";
  const content = Object.entries(response.content || {});
  const codes = content.flatMap(([, media]) => codesOf(media.schema));
  const headers = Object.entries(response.headers || {}).map(([name, header]) =>
    row(name, resolve(header).required, resolve(header).schema, resolve(header).description, DEPTH_MAX));
  return make("details", { class: "answer", open: status < 300 },
    make("summary", {}, make("span", { class: "status " + kind }, status),
      make("span", {}, codes.length ? codes.map((code, at) => [at ? ", " : "", make("code", {}, code)]).flat() : inline(response.description))),
    codes.length ? paragraphs(response.description) : [],
    content.map(([type, media]) => [
      make("p", { class: "soft" }, type), codes.length ? [] : shown(media.schema),
      examplesOf(media).map(([title, value]) => sample(title, written(value)))]).flat(5),
    headers.length ? [make("h4", {}, "Headers"), table(["Header", "Type", "Description"], headers)] : []);
}

function operationOf(path, method, operation, shared) {
  const parameters = [...(shared || []), ...(operation.parameters || [])].map(resolve);
  const rows = parameters.map((one) => row(one.name, one.required, one.schema, `In the ${one.in}. ${one.description || ""}`, 0));
  const open = operation.security && !operation.security.length;
  const node = make("details", { class: "operation", id: operation.operationId },
    make("summary", {}, make("span", { class: "method " + method }, method.toUpperCase()),
      make("span", { class: "path" }, path), make("span", { class: "soft" }, operation.summary)),
    make("div", { class: "inside" }, paragraphs(operation.description), open ? make("p", { class: "soft" }, "No key needed.") : "",
      sample("With curl", curl(path, method, operation, parameters)), tryIt(path, method, operation, parameters),
      rows.length ? [make("h3", {}, "Parameters"), table(["Name", "Type", "Description"], rows)] : [],
      requestBody(operation.requestBody).flat(5),
      make("h3", {}, "Answers"),
      Object.entries(operation.responses).map(([status, one]) => answer(Number(status), one))));
  const link = make("li", {}, make("a", { href: "#" + operation.operationId },
    make("span", { class: "method " + method }, method.toUpperCase()), make("span", {}, operation.summary)));
  const words = [path, method, operation.operationId, JSON.stringify(operation)].join(" ").toLowerCase();
  return { node, link, words };
}

/** Everything of one tag. */
function tagOf(tag) {
  const found = [];
  for (const [path, item] of Object.entries(doc.paths)) {
    for (const method of METHODS) {
      const operation = item[method];
      if (operation && operation.tags.includes(tag.name)) found.push(operationOf(path, method, operation, item.parameters));
    }
  }
  const section = make("section", {}, make("h2", {}, tag.name), make("p", { class: "soft" }, tag.description),
    found.map((one) => one.node));
  const list = make("div", {}, make("h2", {}, tag.name), make("ul", {}, found.map((one) => one.link)));
  return { found, section, list };
}

/** Shows only what contains every word. */
function filter(tags, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const tag of tags) {
    let some = false;
    for (const one of tag.found) {
      const fits = words.every((word) => one.words.includes(word));
      one.node.hidden = one.link.hidden = !fits;
      some = some || fits;
      count += fits ? 1 : 0;
    }
    tag.section.hidden = tag.list.hidden = !some;
  }
  const state = document.getElementById("state");
  state.hidden = !words.length;
  state.textContent = count === 1 ? "One operation." : `${count} operations.`;
}

/** Opens the operation that the address names. */
function openNamed() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!named || !named.classList.contains("operation")) return;
  named.open = true;
  named.scrollIntoView();
  named.querySelector("summary").focus({ preventScroll: true });
}

function show(loaded) {
  doc = loaded;
  document.getElementById("version").textContent = doc.info.version;
  document.getElementById("state").hidden = true;
  const tags = doc.tags.map(tagOf);
  document.getElementById("list").append(...tags.map((tag) => tag.list));
  const about = make("section", {}, paragraphs(doc.info.description),
    make("p", { class: "soft" }, "Licence: " + doc.info.license.name));
  document.getElementById("main").append(about, ...tags.map((tag) => tag.section));
  keyField(document.getElementById("key"));
  const input = document.getElementById("filter");
  input.addEventListener("input", () => filter(tags, input.value));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.matches("input, textarea")) return;
    event.preventDefault();
    input.focus();
  });
  if (matchMedia("(max-width: 58rem)").matches) document.getElementById("contents").open = false;
  addEventListener("hashchange", openNamed);
  openNamed();
}

fetch("/openapi.json").then((answered) => {
  if (!answered.ok) throw new Error("status " + answered.status);
  return answered.json();
}).then(show).catch((error) => {
  document.getElementById("state").textContent = `The document cannot be shown: ${error.message}`;
});
