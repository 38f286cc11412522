import createClient from "openapi-fetch";
import { API_BASE } from "../base";
import { ApiError, errorOf } from "./errors";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

/** Typed calls of the API: `api.GET("/api/v1/jobs", { params: { query: { limit: 50 } } })`. */
export const api = createClient<paths>({
  baseUrl: API_BASE || window.location.origin,
  credentials: "same-origin",
  // The API takes lists as repeated parameters: state=failed&state=aborted.
  querySerializer: { array: { style: "form", explode: true } },
});

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Returns what a call answered; throws `ApiError`. */
export async function answer<T>(call: Promise<Answer<T>>): Promise<T> {
  let got: Answer<T>;
  try {
    got = await call;
  } catch (problem) {
    if (problem instanceof DOMException && problem.name === "AbortError") throw problem;
    throw new ApiError("unreachable", "The server does not answer.", 0);
  }
  if (got.response.ok) return got.data as T;
  throw errorOf(got.response.status, got.error);
}
