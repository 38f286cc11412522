/**
 * Some browsers name a language that `Intl` refuses ("en-US@posix", where the system has none).
 * uPlot asks for it as soon as it is loaded: imported before it, this gives it a valid one.
 */
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: "en", configurable: true });
}

export {};
