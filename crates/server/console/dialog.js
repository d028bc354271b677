// Dialogs, toasts and error messages.

import { button, coded, h, icon, put, set } from "./dom.js";
import { form, reason } from "./form.js";
import { has, language, t, tt } from "./texts.js";

/** Shows a dialog and returns it. A closed dialog is removed. */
export function dialog(title, content, { wide } = {}) {
  const name = `dialog-${Math.random().toString(36).slice(2)}`;
  const made = h("dialog", { class: wide ? "wide" : null, "aria-labelledby": name });
  put(made, h("div", { class: "inside" }, h("h2", { id: name }, title), content(made)));
  const uncover = cover();
  made.addEventListener("close", () => {
    raise();
    made.remove();
    uncover();
  });
  document.body.append(made);
  made.showModal();
  // A number is mostly typed anew.
  if (document.activeElement.matches("input[inputmode]")) document.activeElement.select();
  raise();
  return made;
}

/**
  * Confirms an act that can be undone, or one with few consequences. `consequences` says what it does, in numbers: a list of
  * texts or elements. `label` is the act's own verb, and `keep` the word of the way out if it is not *Cancel*. `why` asks for a
  * reason, which may stay empty: true, or `{frequent, required, kept}` with frequent reasons to choose from. Resolves to `null`, or
  * to `{reason}`.
 */
export function confirmActs(title, consequences, label, { reason: why, danger, keep } = {}) {
  return new Promise((resolve) => {
    let sure = null;
    const made = dialog(title, (box) => {
      const go = ({ reason: given = "" }) => {
        sure = { reason: given };
        box.close();
      };
      const facts = consequences.filter(Boolean).map((one) => h("li", {}, one));
      const content = why ? [reason(why.kept, why)] : [];
      return [facts.length > 0 && h("ul", { class: "acts" }, facts), form(content, label, go, { cancel: () => box.close(), keep, kind: danger ? "main danger" : "main" })];
    });
    made.addEventListener("close", () => resolve(sure));
    // Links of the consequences come before it.
    made.querySelector("form :is(input, button)").focus();
  });
}

/**
  * Confirms an action that cannot be undone: its name must be typed. Resolves to `null`, or to `{reason}`. An act of the audit
  * log (`audited`) asks for its reason, which may stay empty.
 */
export function confirmTyped(title, text, name, label, { audited } = {}) {
  return new Promise((resolve) => {
    const input = h("input", { id: "typed", autocomplete: "off", spellcheck: "false", autocapitalize: "off" });
    const go = h("button", { type: "submit", class: "main danger", disabled: true }, label);
    input.addEventListener("input", () => (go.disabled = input.value !== name));
    const why = audited && reason();
    let sure = null;
    const made = dialog(title, (box) => {
      const submit = (event) => {
        event.preventDefault();
        if (input.value !== name) return;
        sure = { reason: why ? why.querySelector("input").value.trim() : "" };
        box.close();
      };
      const ask = h("label", { for: "typed" }, tt("common.type_to_go_on", { name: h("code", {}, name) }));
      const ends = h("div", { class: "ends" }, button(t("common.cancel"), () => box.close()), go);
      return [
        h("p", { class: "soft" }, text),
        h("form", { class: "stack", submit, novalidate: true }, h("div", { class: "field" }, ask, input), why, ends),
      ];
    });
    made.addEventListener("close", () => resolve(sure));
    input.focus();
  });
}

/** Milliseconds for which a success is shown, and one that can be undone. */
const SHOWN = 5000;
const SHOWN_TO_UNDO = 30000;

const toasts = document.getElementById("toasts");
const banner = document.getElementById("banner");

/** A modal dialog covers the page and takes every click, so toasts are inside the topmost one. */
function raise() {
  const top = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body;
  if (toasts.parentElement !== top) top.append(toasts);
}

/** A failure is read where it happened: it goes when a later change succeeds. */
function forgetFailures() {
  toasts.querySelectorAll(".bad").forEach((made) => made.remove());
}

/** The address at which a message was shown. One that takes something back has none: it stays on all pages. */
const shownAt = new WeakMap();

/** The timer of each message that goes by itself. */
const timers = new WeakMap();

/** Shows a message for so long from now on. */
function last(made, shown) {
  clearTimeout(timers.get(made));
  timers.set(made, setTimeout(() => made.remove(), shown));
}

/**
 * A dialog is not covered by what was said before. A message that takes something back is hidden until the dialog is closed, and has its
 * whole time from then on: the function that is returned shows it again.
 */
function cover() {
  const before = [...toasts.children].filter((made) => !made.hidden);
  before.filter((made) => shownAt.has(made)).forEach((made) => made.remove());
  const waiting = before.filter((made) => !shownAt.has(made));
  waiting.forEach((made) => {
    clearTimeout(timers.get(made));
    made.hidden = true;
  });
  return () => waiting.forEach((made) => {
    made.hidden = false;
    last(made, SHOWN_TO_UNDO);
  });
}

/** A message goes with its page. One of an act that leads elsewhere is shown after the address has changed, so it is of the new page. */
function forgetPage() {
  [...toasts.children].filter((made) => shownAt.has(made) && shownAt.get(made) !== location.hash).forEach((made) => made.remove());
}

window.addEventListener("hashchange", forgetPage);
window.addEventListener("tally:changed", forgetFailures);

/** Reports shortly a success, or a failure, which has no time of its own; `undo` is `{label, run}`. One that returns `false` has undone nothing, and may be tried again. */
export function toast(kind, title, text, undo) {
  const made = h("div", { class: `toast ${kind}${undo ? " undo" : ""}`, role: kind === "bad" ? "alert" : "status" });
  if (!undo) shownAt.set(made, location.hash);
  const close = button("", () => made.remove(), { kind: "plain small", icon: "close" });
  close.setAttribute("aria-label", t("common.close_message"));
  const act = undo && button(undo.label, async () => {
    if ((await undo.run()) !== false) made.remove();
  }, { kind: "small", failed });
  put(made, icon(kind === "bad" ? "bad" : "ok"), h("div", {}, h("p", { class: "strong" }, title), text && h("p", { class: "small soft" }, text), act), close);
  // One that takes something back is the last to go.
  while (toasts.children.length >= 3) (toasts.querySelector(".toast:not(.undo)") ?? toasts.firstElementChild).remove();
  raise();
  toasts.append(made);
  if (kind !== "bad") last(made, undo ? SHOWN_TO_UNDO : SHOWN);
}

/** The words of a problem. The server writes English: another language has a sentence for a frequent code. */
export const wordsOf = (code, detail) => (language !== "en" && has(`error.${code}`) ? t(`error.${code}`) : detail);

/** What a problem says: its sentence; and its wrong fields, with the request id for the log. */
function said(error) {
  if (error.code === "unreachable") return [t("common.no_answer"), error.changing && t("common.no_answer_change")];
  const detail = sentence(error.message);
  // One wrong field is mostly the whole sentence.
  const others = (error.fields ?? []).filter(({ detail: wrong }) => !error.message.includes(wrong));
  const fields = others.map(({ pointer, detail: wrong }) => `${pointer ?? ""} ${wrong}`.trim());
  const request = error.request && t("common.request", { id: error.request });
  // What the server wrote follows.
  const own = wordsOf(error.code, null);
  const more = [fields.length > 0 ? fields.join("; ") : own && detail, request].filter(Boolean).join(" · ");
  return [own || detail, more];
}

/** Problems of which the banner above the page may tell. */
const IN_BANNER = ["loading", "draining", "unreachable"];

/** Whether nothing needs to be said of a failure: the banner tells of reads that get no answer now, and the page that a key is needed. */
const isKnown = (error) => ["AbortError", "unauthorized"].some((one) => one === error.name || one === error.code)
  || (IN_BANNER.includes(error.code) && !error.changing && banner.textContent !== "");

/** Shows a failure as a toast. */
export function failed(error) {
  if (isKnown(error)) return;
  const [title, more] = said(error);
  toast("bad", coded(title), more && coded(more));
}

/** Shows a failure in its place on the page. */
export function inline(place, error) {
  if (error.name === "AbortError") return;
  // A form says all of it where it was sent.
  if (isKnown(error) && !place.closest("form, dialog")) {
    set(place);
    return;
  }
  const [title, more] = said(error);
  // An unavailable server is no error of the user.
  const kind = IN_BANNER.includes(error.code) ? "warn" : "bad";
  set(place, h("div", { class: `notice ${kind}`, role: "alert" }, icon("bad"), h("div", {}, h("p", { class: "strong" }, coded(title)), more && h("p", { class: "small" }, coded(more)))));
}

/** A detail begins with a small letter, a sentence with a capital. */
export function sentence(text) {
  return text ? text[0].toUpperCase() + text.slice(1) : text;
}
