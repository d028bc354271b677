// Applies the chosen theme before anything is painted: the same choice as in the console. The default is the system's.
(() => {
  try {
    const chosen = localStorage.getItem("tally.theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // A browser without storage shows the system's theme.
  }
})();
