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
  if (problem instanceof Error) return problem.message;
  return "Something went wrong.";
}

function plain(status: number): string {
  if (status === 401) return "You are not signed in.";
  if (status === 403) return "You may not do this.";
  if (status === 404) return "It does not exist, or you may not see it.";
  if (status === 429) return "Too many requests: try again in a moment.";
  if (status >= 500) return "The server failed to answer.";
  return `The server refused the request (${status}).`;
}

function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(first) ? first : `${first}.`;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
