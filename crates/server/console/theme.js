// The theme that was chosen, before anything is painted. Without a choice it is the system's.
(() => {
  try {
    const chosen = localStorage.getItem("tally.theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // A browser that keeps nothing shows the system's theme.
  }
})();
