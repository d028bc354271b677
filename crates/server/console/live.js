// Polling: work that is repeated while its page is shown and visible.
//
// All polling of a page goes through `every`, so that events can replace it in one module.

/** Runs `work` now, and again `wait` milliseconds after each run, until `signal`; not while the tab is hidden. */
export function every(wait, signal, work, failed = () => {}) {
  let timer = null;
  let running = false;
  const run = async () => {
    if (running || signal.aborted) return;
    running = true;
    clearTimeout(timer);
    try {
      await work();
    } catch (error) {
      if (!signal.aborted && error.name !== "AbortError") failed(error);
    } finally {
      running = false;
      if (!signal.aborted && !document.hidden) timer = setTimeout(run, wait);
    }
  };
  const seen = () => document.hidden || run();
  document.addEventListener("visibilitychange", seen, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  run();
  return run;
}
