/** The prefix under which the server serves this page; it ends with a slash. */
export const BASE =
  document.querySelector<HTMLMetaElement>('meta[name="windlass-base"]')?.content || "/";

/** The same without its last slash, for addresses of the API. */
export const API_BASE = BASE.replace(/\/$/, "");
