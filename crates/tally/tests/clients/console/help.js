// What the tests of the console know of a page: it is used by what can be read on it, names of buttons and labels of fields.
(() => {
  const seen = (element) => element.getClientRects().length > 0 && getComputedStyle(element).visibility !== "hidden";
  const clean = (text) => text.replace(/[\s\u202f]+/g, " ").trim();
  const named = (element) => clean(element.getAttribute("aria-label") ?? element.textContent);
  const root = () => [...document.querySelectorAll("dialog[open]")].at(-1) ?? document;
  const all = (selector) => [...root().querySelectorAll(selector)].filter(seen);
  const one = (selector, name) => all(selector).find((element) => named(element) === name);

  /** Goes to an address. What is shown until the page has heard of that is marked. */
  const go = (hash) => {
    if (location.hash !== hash) document.querySelector("main > *")?.setAttribute("data-before", "");
    location.hash = hash;
    return true;
  };

  /** The messages since the last click. A page shows each for seconds, and a busy machine may look later. */
  let said = [];
  const saw = (node) => { if (node.nodeType === Node.ELEMENT_NODE && node.matches(".toast")) said.push(clean(node.innerText)); };
  new MutationObserver((changes) => changes.forEach((change) => change.addedNodes.forEach(saw))).observe(document, { childList: true, subtree: true });

  const click = (name, at = 0) => {
    const found = all("button, a, summary").filter((element) => named(element) === name && !element.disabled)[at];
    if (found) said = [];
    found?.focus();
    found?.click();
    return Boolean(found);
  };
  const field = (label, within = "") => {
    const labels = all(`${within} label`).filter((element) => named(element) === label);
    const named_by = labels.map((element) => document.getElementById(element.htmlFor)).find(Boolean);
    return named_by ?? all("input, select").find((element) => element.getAttribute("aria-label") === label);
  };
  const fill = (label, value, within) => {
    const input = field(label, within);
    if (!input || input.disabled) return false;
    if (input.type === "checkbox") {
      if (input.checked !== value) input.click();
      return true;
    }
    input.value = value;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    input.dispatchEvent(new Event("change", { bubbles: true }));
    return input.value === value;
  };
  /** The text of a row that has all of these words. */
  const row = (...words) => all("tr").map((element) => clean(element.innerText)).find((text) => words.every((word) => text.includes(word))) ?? null;
  const text = () => clean(document.body?.innerText ?? "");
  /** Whether a text is on the page, or was in a message. */
  const sees = (words) => text().includes(words) || said.some((one) => one.includes(words));

  const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colour = (name) => {
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = name;
    pixel.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pixel.getImageData(0, 0, 1, 1).data;
    return { parts: [r, g, b], alpha: a / 255 };
  };
  const over = (top, below) => top.parts.map((part, at) => part * top.alpha + below[at] * (1 - top.alpha));
  const light = (parts) => {
    const [r, g, b] = parts.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.unshift(colour(getComputedStyle(at).backgroundColor));
    return layers.reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };

  /** Text that is hard to read against what is behind it (WCAG AA). */
  const faint = () => {
    const found = new Set();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      const words = clean(walker.currentNode.data);
      if (!words || !seen(element) || element.closest(".unseen, .skip, :disabled, svg")) continue;
      const style = getComputedStyle(element);
      const back = behind(element);
      const front = over(colour(style.color), back);
      const [one, two] = [light(front), light(back)].sort((a, b) => b - a);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      const ratio = (one + 0.05) / (two + 0.05);
      if (ratio < (large ? 3 : 4.5)) found.add(`faint (${ratio.toFixed(2)}): ${words.slice(0, 40)} <${element.tagName} ${element.className}>`);
    }
    return [...found];
  };

  /** What a reader of screens, a keyboard or a small window would stumble over. */
  const faults = () => {
    const found = faint();
    const say = (what, element) => found.push(`${what}: <${element.tagName} ${element.className}> ${clean(element.textContent).slice(0, 60)}`);
    if (document.querySelectorAll("h1").length !== 1) found.push("not exactly one h1");
    if (!document.querySelector("nav[aria-label] [aria-current=page]")) found.push("no present page in the navigation");
    const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
    for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.push(`twice: #${id}`);
    for (const input of document.querySelectorAll("input, select, textarea")) {
      if (!input.labels?.length && !input.getAttribute("aria-label")) say("no label", input);
    }
    for (const control of document.querySelectorAll("button, a[href]")) if (!named(control)) say("no name", control);
    for (const heading of document.querySelectorAll("th")) if (!heading.scope || !clean(heading.textContent) && !heading.querySelector("input")) say("heading", heading);
    for (const table of document.querySelectorAll("table")) if (!table.caption) say("no caption", table);
    for (const image of document.querySelectorAll("img:not([alt]), svg[role=img]:not([aria-label])")) say("no words for a picture", image);
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth > width) found.push(`scrolls sideways: ${document.documentElement.scrollWidth} of ${width}`);
    for (const element of document.querySelectorAll("main *, header *, dialog[open] *")) {
      const box = element.getBoundingClientRect();
      if (seen(element) && !element.closest(".unseen") && (box.right > width + 1 || box.left < -1)) say(`outside the window (${Math.round(box.left)} to ${Math.round(box.right)})`, element);
    }
    return found;
  };

  window.help = { seen, all, one, click, field, fill, row, text, sees, go, faults };
})();
