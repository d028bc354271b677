// Elements of the page: text, tables, and examples that can be copied. Text goes into the page as text only.

/** An element with attributes and children; strings become text. */
export function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== ""));
  return element;
}

/** Text with `code` and **bold**. */
export function inline(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (part.startsWith("`") && part.length > 1) return make("code", {}, part.slice(1, -1));
    if (part.startsWith("**") && part.length > 3) return make("strong", {}, part.slice(2, -2));
    return part;
  });
}

export const paragraphs = (text) => (text || "").split("\n\n").filter(Boolean).map((one) => make("p", {}, inline(one)));

export function table(heads, rows) {
  const head = make("tr", {}, heads.map((one) => make("th", { scope: "col" }, one)));
  return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, rows)));
}

/** Text that can be copied. */
export function sample(title, text) {
  const button = make("button", { type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it";
      getSelection().selectAllChildren(button.previousSibling);
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  return [make("h4", {}, title), make("div", { class: "sample" }, make("pre", { tabindex: "0" }, text), button)];
}

export const written = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

/** The examples of a media type, each with a title. */
export function examplesOf(media) {
  if (media.examples) return Object.values(media.examples).map((one) => [one.summary, one.value]);
  return media.example === undefined ? [] : [["Example", media.example]];
}
