// What moves: work that is done again and again while its page is shown and seen.
//
// Everything that a page follows goes through `every`, so that events can take the place of asking in one module.

/** Does `work` now and again `wait` milliseconds after it ended, until `signal`; not while the tab is hidden. */
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
