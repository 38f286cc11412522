/** What the server refused, in its own words. */
export class ApiError extends Error {
  readonly code: string;
  readonly status: number;
  readonly field: string | undefined;

  constructor(code: string, message: string, status: number, field?: string) {
    super(message);
    this.name = "ApiError";
    this.code = code;
    this.status = status;
    this.field = field;
  }
}

/** Returns the error in the body of a refused request. */
export function errorOf(status: number, body: unknown): ApiError {
  const error = isObject(body) && isObject(body.error) ? body.error : {};
  const code = typeof error.code === "string" ? error.code : "unknown";
  const message = typeof error.message === "string" ? error.message : plain(status);
  const field = typeof error.field === "string" ? error.field : undefined;
  return new ApiError(code, sentence(message), status, field);
}

/** Returns any error in words for people. */
export function inWords(problem: unknown): string {
  if (isLoadFailure(problem)) return "This part of the page could not be loaded.";
  if (problem instanceof ApiError) return problem.message;
  if (problem instanceof Error) return `The page made a mistake: ${sentence(problem.message)}`;
  return "Something went wrong.";
}

/** Returns whether code of the page is missing: the server is away, or has a newer page. */
export function isLoadFailure(problem: unknown): boolean {
  if (!(problem instanceof Error) || problem instanceof ApiError) return false;
  return /dynamically imported module|preload CSS|module script/i.test(problem.message);
}

/** Returns whether the same request may succeed later. */
export function isTemporary(problem: unknown): boolean {
  if (!(problem instanceof ApiError)) return true;
  return problem.status === 0 || problem.status === 429 || problem.status >= 500;
}

/** Returns whether it does not exist, or not any more: what was known of it is history. */
export function isGone(problem: unknown): boolean {
  return problem instanceof ApiError && (problem.status === 404 || problem.status === 410);
}

/** Returns what a person can do about an error; nothing where its message says it. */
export function adviceFor(problem: unknown): string | undefined {
  if (isLoadFailure(problem)) return "Check that the server is running, then try again.";
  if (!(problem instanceof ApiError)) return "Load the page again. If it stays, report it.";
  if (problem.field === "as_of") return "Choose another time in the header, or go back to now.";
  return ADVICE[problem.status] ?? (problem.status >= 500 ? FAULT : undefined);
}

const FAULT = "Try again. If it stays, whoever runs the server finds the reason in its log.";

const ADVICE: Record<number, string> = {
  0: "Check that it is running and that you can reach it, then try again.",
  401: "Sign in again.",
  403: "Sign in with a token that may, or ask an administrator for one.",
  404: "It may have been deleted, or be in a namespace that your token does not see.",
  410: "Submit it again.",
  429: "Try again in a moment.",
  503: "Try again in a moment.",
};

function plain(status: number): string {
  if (status === 401) return "You are not signed in.";
  if (status === 403) return "You may not do this.";
  if (status === 404) return "It does not exist, or you may not see it.";
  if (status === 429) return "There are too many requests.";
  if (status >= 500) return "The server could not answer.";
  return `The server refused the request (${status}).`;
}

function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(first) ? first : `${first}.`;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
