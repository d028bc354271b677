// Polling: work that is repeated while its page is shown and visible.
//
// All polling of a page goes through `every`, so that events can replace it in one module.

/**
  * Runs `work` now, and again `wait` milliseconds after each run, until `signal`; not while the tab is hidden. A refusal for want of
  * a right ends it: the next answer would be the same, and the server logs each one as an event of security.
 */
export function every(wait, signal, work, failed = () => {}) {
  let timer = null;
  let running = false;
  let refused = false;
  const run = async () => {
    if (running || signal.aborted) return;
    running = true;
    clearTimeout(timer);
    try {
      await work();
    } catch (error) {
      refused = error.status === 403;
      if (!signal.aborted && error.name !== "AbortError") failed(error);
    } finally {
      running = false;
      if (!signal.aborted && !document.hidden && !refused) timer = setTimeout(run, wait);
    }
  };
  const seen = () => document.hidden || refused || run();
  document.addEventListener("visibilitychange", seen, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  run();
  return run;
}

/** Whether a dialog is open, or a field of the page has what was typed or is being typed into: a refresh waits for its end. */
export function isEdited(root) {
  const fields = [...root.querySelectorAll("input, textarea")];
  return document.querySelector("dialog[open]") !== null || fields.some((one) => one === document.activeElement || one.value !== one.defaultValue);
}
