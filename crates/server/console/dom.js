// Making elements. Text goes in as text nodes only; nothing here, or anywhere in the console, reads markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes (functions are listeners, `false` and `null` are left out) and children. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for drawings. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  put(element, ...children);
  return element;
}

/** Appends children: nodes as they are, lists one by one, everything else as text. */
export function put(element, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** Replaces all children. */
export function set(element, ...children) {
  element.replaceChildren();
  return put(element, ...children);
}

const shown = new WeakMap();

/** Replaces all children, but only when `state` has changed: unchanged elements keep their focus. */
export function renew(element, state, make) {
  const text = JSON.stringify(state);
  if (shown.get(element) === text) return;
  shown.set(element, text);
  set(element, make());
}

const PATHS = {
  overview: "M4 19V11M9.3 19V5M14.7 19v-9M20 19V8",
  boards: "M4 20h16M6 20v-6h4v6M10 20V6h4v14M14 20v-9h4v9",
  contests: "M8 4h8v6a4 4 0 0 1-8 0zM8 6H4.5c0 3 1.2 4.5 3.6 4.5M16 6h3.5c0 3-1.2 4.5-3.6 4.5M12 14v4M8.5 20h7",
  players: "M12 4.5a3.6 3.6 0 1 0 0 7.2 3.6 3.6 0 0 0 0-7.2zM5 19.5c0-3.6 3-5.4 7-5.4s7 1.8 7 5.4",
  wallets: "M4 7.5h14a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2zM4 7.5c0-1.7 1-3 2.7-3H16M15.5 13.5h.5",
  server: "M4 5h16v6H4zM4 13h16v6H4zM7.5 8h.5M7.5 16h.5",
  settings: "M4 7h9M17 7h3M4 12h3M11 12h9M4 17h10M18 17h2M15 5v4M9 10v4M16 15v4",
  light: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.6l1.1 1.1M17.3 17.3l1.1 1.1M18.4 5.6l-1.1 1.1M6.7 17.3l-1.1 1.1",
  dark: "M20 14.5A8.2 8.2 0 0 1 9.5 4a8.2 8.2 0 1 0 10.5 10.5z",
  system: "M4 5h16v11H4zM9 20h6M12 16v4",
  key: "M8 11a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM11 12l8.5-8.5M16 7l3 3M13.5 9.5l2 2",
  ok: "M5 12.5l4.5 4.5L19 7.5",
  bad: "M12 8v5M12 16.5v.1M12 3.5l9 16H3z",
  close: "M6 6l12 12M18 6L6 18",
  back: "M14.5 6l-6 6 6 6",
  next: "M9.5 6l6 6-6 6",
  plus: "M12 5v14M5 12h14",
  search: "M10.5 4.5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM15 15l5 5",
};

/** A drawing without a text alternative: the words beside it have its meaning. */
export function icon(name) {
  const path = svg("path", { d: PATHS[name] });
  return svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, path);
}

/** A button; `run` may be asynchronous: the button is disabled meanwhile, and a failure goes to `failed`. */
export function button(label, run, { kind = "", icon: drawing, title, failed } = {}) {
  const children = [drawing && icon(drawing), label];
  const made = h("button", { type: "button", class: kind || null, title }, children);
  made.addEventListener("click", async () => {
    made.disabled = true;
    try {
      await run(made);
    } catch (error) {
      if (!failed) throw error;
      failed(error);
    } finally {
      made.disabled = false;
    }
  });
  return made;
}

/** What is to be done once an element is near the window: it is done before it is looked at. */
const unseen = new WeakMap();
const watcher = new IntersectionObserver((entries) => entries.filter(({ isIntersecting }) => isIntersecting).forEach(({ target }) => {
  watcher.unobserve(target);
  unseen.get(target)();
}), { rootMargin: "1000px" });

/** Runs once the element is in the window, or soon may be: a long list asks for what is looked at. */
export function onceSeen(element, run) {
  unseen.set(element, run);
  watcher.observe(element);
}

/** Buttons of which one is pressed. `options` are `[value, label]`. */
export function choice(label, options, value, chosen) {
  const buttons = options.map(([option, text]) => {
    const pressed = String(option === value);
    return h("button", { type: "button", "aria-pressed": pressed, click: () => press(option) }, text);
  });
  const press = (option) => {
    options.forEach(([other], at) => buttons[at].setAttribute("aria-pressed", String(other === option)));
    chosen(option);
  };
  return h("div", { class: "group", role: "group", "aria-label": label }, buttons);
}

/** The head of a page: its parent page, name, description and actions. */
export function head(title, { about, crumb, marks, actions } = {}) {
  const up = crumb && h("a", { class: "crumb", href: crumb[0] }, icon("back"), crumb[1]);
  const name = h("h1", { tabindex: "-1" }, title);
  const text = h("div", {}, up, name, about && h("p", {}, about), marks && h("div", { class: "row" }, marks));
  return h("div", { class: "head" }, text, actions && h("div", { class: "row" }, actions));
}

/** A card with a heading. */
export function card(title, body, { side, foot } = {}) {
  const top = title && h("div", { class: "top" }, h("h2", {}, title), side);
  return h("section", { class: "card" }, top, body, foot && h("div", { class: "foot" }, foot));
}

/** An empty state, with a next step. */
export function empty(title, text, ...actions) {
  const row = actions.length > 0 && h("div", { class: "row" }, actions);
  return h("div", { class: "empty" }, h("p", { class: "title" }, title), h("p", {}, text), row);
}

/** A player's id, or a name of it, as a link to its page. */
export function playerLink(player, kind = "name", name = player) {
  return h("a", { class: kind, href: `#/players/${encodeURIComponent(player)}` }, name);
}

/** Names with their values. */
export function facts(pairs, kind = "") {
  const one = ([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  return h("dl", { class: `facts ${kind}` }, pairs.filter(Boolean).map(one));
}

/** A badge. */
export function chip(text, kind = "") {
  return h("span", { class: `chip ${kind}` }, text);
}

/** Text in which the words between backticks are code. */
export function coded(text) {
  return text.split("`").map((part, at) => (at % 2 === 1 ? h("code", {}, part) : part));
}

/** A notice. */
export function notice(kind, ...children) {
  const role = kind === "bad" ? "alert" : "status";
  return h("div", { class: `notice ${kind}`, role }, icon(kind === "ok" ? "ok" : "bad"), h("div", {}, children));
}
