// Forms: a label and an explanation for every field, errors beside them, one result.

import { button, h, put, set } from "./dom.js";
import { inline, wordsOf } from "./dialog.js";
import { t } from "./texts.js";

/** The reason of an act that takes another one back: the log has one word for it, in whatever language the console is. */
export const UNDONE = "undone";

/** The reason where none was typed: a caller without a key leaves a row of the audit log only with a reason. */
export const UNSAID = "console";

/** A stored reason as it is read: those of the console itself in the reader's language. */
export const storedReason = (kept) => (kept === UNDONE || kept === UNSAID ? t(`reason.${kept}`) : kept);

let fields = 0;

/**
  * A field: `{name, label, hint, value, type, options, frequent, required}`. Options are `[value, text]`. Frequent values (or
  * `[value, text]`) are offered, and others may be typed.
 */
export function field(options) {
  const { name, label, hint, value = "", type = "text", options: choices, frequent, ...others } = options;
  fields += 1;
  const id = `field-${fields}`;
  const about = hint ? `${id}-hint` : null;
  const common = { id, name, "aria-describedby": about, ...others };
  if (type === "checkbox") {
    const input = h("input", { ...common, type, checked: Boolean(value) });
    const tick = h("div", { class: "tick" }, input, h("label", { for: id }, label));
    return h("div", { class: "field" }, tick, hint && h("span", { class: "hint", id: about }, hint));
  }
  const input = choices
    ? h("select", common, choices.map(([one, text]) => h("option", { value: one, selected: one === value }, text)))
    : h("input", { autocomplete: "off", spellcheck: "false", ...common, type, value, list: frequent ? `${id}-list` : null });
  const offered = frequent && h("datalist", { id: `${id}-list` }, frequent.map((one) => [one].flat()).map(([one, text]) => h("option", { value: one, label: text })));
  return h("div", { class: "field" }, h("label", { for: id }, label), input, offered, hint && h("span", { class: "hint", id: about }, hint));
}

/** The field of a reason, by default an optional one for the audit log. */
export function reason(kept = t("common.reason_kept"), { frequent, required } = {}) {
  const hint = required ? kept : t("common.reason_hint", { kept });
  return field({ name: "reason", label: t("common.reason"), maxlength: 255, hint, frequent, required });
}

/** The values of a form by name: trimmed text, whether a box is ticked, a file. */
export function values(form) {
  const all = {};
  for (const input of form.querySelectorAll("[name]")) {
    all[input.name] = input.type === "checkbox" ? input.checked : input.type === "file" ? input.files[0] : input.value.trim();
  }
  return all;
}

/**
  * A form with an action. `send(values)` may be asynchronous; an error that it throws is shown in the form and its fields. `keep` is
  * the word of the way out.
 */
export function form(content, label, send, { cancel, keep = t("common.cancel"), kind = "main", inline: line } = {}) {
  const said = h("div", {});
  const go = h("button", { type: "submit", class: kind }, label);
  const ends = h("div", { class: line ? "row" : "ends row" }, cancel && button(keep, cancel), go);
  const made = h("form", { novalidate: true }, line ? h("div", { class: "inline" }, content, ends) : content, said, !line && ends);
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    set(said);
    unmark(made);
    const empty = [...made.querySelectorAll("[required]")].filter((input) => input.value.trim() === "");
    empty.forEach((input) => mark(input, t("common.needed")));
    if (empty.length > 0) return empty[0].focus();
    go.disabled = true;
    try {
      await send(values(made), made);
    } catch (error) {
      inline(said, error);
      said.scrollIntoView({ block: "nearest" });
      for (const { pointer, code, detail } of error.fields ?? []) {
        const name = pointer?.split("/").pop();
        const input = name && made.querySelector(`[name="${CSS.escape(name)}"]`);
        if (input) mark(input, wordsOf(code, detail));
      }
    } finally {
      go.disabled = false;
    }
  });
  return made;
}

function mark(input, text) {
  input.setAttribute("aria-invalid", "true");
  put(input.closest(".field") ?? input.parentElement, h("span", { class: "wrong" }, text));
  input.focus();
}

function unmark(form) {
  form.querySelectorAll("[aria-invalid]").forEach((input) => input.removeAttribute("aria-invalid"));
  form.querySelectorAll(".wrong").forEach((text) => text.remove());
}
