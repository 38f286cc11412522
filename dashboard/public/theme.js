// Runs before the first paint, so that a chosen theme does not flash.
try {
  const chosen = localStorage.getItem("windlass.theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage is turned off: the page follows the system.
}
