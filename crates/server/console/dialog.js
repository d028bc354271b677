// Dialogs, toasts and error messages.

import { button, coded, h, icon, put, set } from "./dom.js";
import { form, reason } from "./form.js";

/** Shows a dialog and returns it. A closed dialog is removed. */
export function dialog(title, content, { wide } = {}) {
  const name = `dialog-${Math.random().toString(36).slice(2)}`;
  const made = h("dialog", { class: wide ? "wide" : null, "aria-labelledby": name });
  put(made, h("div", { class: "inside" }, h("h2", { id: name }, title), content(made)));
  made.addEventListener("close", () => made.remove());
  document.body.append(made);
  made.showModal();
  return made;
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
      const ask = h("label", { for: "typed" }, "Type ", h("code", {}, name), " to go on");
      const ends = h("div", { class: "ends" }, button("Cancel", () => box.close()), go);
      return [
        h("p", { class: "soft" }, text),
        h("form", { class: "stack", submit, novalidate: true }, h("div", { class: "field" }, ask, input), why, ends),
      ];
    });
    made.addEventListener("close", () => resolve(sure));
    input.focus();
  });
}

/** Asks for the reason of an act of the audit log, which may stay empty. Resolves to `null`, or to `{reason}`. */
export function askReason(title, label) {
  return new Promise((resolve) => {
    let sure = null;
    const made = dialog(title, (box) => {
      const go = (given) => {
        sure = given;
        box.close();
      };
      return form([reason()], label, go, { cancel: () => box.close() });
    });
    made.addEventListener("close", () => resolve(sure));
  });
}

/** Milliseconds for which a success is shown, and one that can be undone. */
const SHOWN = 5000;
const SHOWN_TO_UNDO = 30000;

/** Reports shortly a success or a failure. A failure stays until it is closed; `undo` is `{label, run}`. */
export function toast(kind, title, text, undo) {
  const made = h("div", { class: `toast ${kind}`, role: kind === "bad" ? "alert" : "status" });
  const close = button("", () => made.remove(), { kind: "plain small", icon: "close" });
  close.setAttribute("aria-label", "Close this message");
  const act = undo && button(undo.label, async () => {
    await undo.run();
    made.remove();
  }, { kind: "small", failed });
  put(made, icon(kind === "bad" ? "bad" : "ok"), h("div", {}, h("p", { class: "strong" }, title), text && h("p", { class: "small soft" }, text), act), close);
  const place = document.getElementById("toasts");
  while (place.children.length >= 3) place.firstElementChild.remove();
  place.append(made);
  if (kind !== "bad") setTimeout(() => made.remove(), undo ? SHOWN_TO_UNDO : SHOWN);
}

/** The text of a problem: its detail, wrong fields, and the request id for the log. */
export function words(error) {
  const fields = (error.fields ?? []).map(({ pointer, detail }) => `${pointer ?? ""} ${detail}`.trim());
  const request = error.request && `Request ${error.request}`;
  return [fields.length > 0 ? fields.join("; ") : null, request].filter(Boolean).join(" · ");
}

/** Shows a failure as a toast. */
export function failed(error) {
  if (error.name === "AbortError") return;
  toast("bad", coded(sentence(error.message)), words(error));
}

/** Shows a failure in its place on the page. */
export function inline(place, error) {
  if (error.name === "AbortError") return;
  // The banner above the page says it already; a form says it where it was sent.
  if (error.code === "unreachable" && !place.closest("form, dialog")) {
    set(place);
    return;
  }
  const text = words(error);
  const said = [h("p", { class: "strong" }, coded(sentence(error.message))), text && h("p", { class: "small" }, text)];
  // An unavailable server is no error of the user, and the banner above the page shows its state.
  const kind = ["loading", "draining", "unreachable"].includes(error.code) ? "warn" : "bad";
  set(place, h("div", { class: `notice ${kind}`, role: "alert" }, icon("bad"), h("div", {}, said)));
}

/** A detail begins with a small letter, a sentence with a capital. */
export function sentence(text) {
  return text ? text[0].toUpperCase() + text.slice(1) : text;
}
