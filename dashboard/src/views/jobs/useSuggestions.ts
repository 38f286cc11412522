import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { answer, api } from "../../api/client";
import { JOB_STATES } from "../../ui/states";

const MAX_COUNT = 40; // more than that nobody reads
const FRESH_MS = 60_000;

/** Returns how the last word of a filter may go on: states, and the names that the farm knows. */
export function useSuggestions(text: string, isUsed: boolean): string[] {
  const queues = useQuery({
    queryKey: ["queues"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/queues", { signal })),
    staleTime: FRESH_MS,
    enabled: isUsed,
  });
  const namespaces = useQuery({
    queryKey: ["namespaces"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/namespaces", { signal })),
    staleTime: FRESH_MS,
    enabled: isUsed,
  });
  const tasks = useQuery({
    queryKey: ["tasks"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/tasks", { signal })),
    staleTime: FRESH_MS,
    enabled: isUsed,
    retry: false, // Who may not see tasks is offered none.
  });
  const words = useMemo(
    () => [
      ...JOB_STATES.map((state) => `state:${state}`),
      ...(queues.data?.queues ?? []).map((one) => `queue:${one.name}`),
      ...(tasks.data?.tasks ?? []).map((one) => `task:${one.name}`),
      ...(namespaces.data?.namespaces ?? []).map((name) => `namespace:${name}`),
    ],
    [queues.data, namespaces.data, tasks.data],
  );
  return useMemo(() => completed(text, words), [text, words]);
}

/** Returns the text with its last word completed in each way that fits. */
export function completed(text: string, words: readonly string[]): string[] {
  const at = text.search(/[^\s"]*$/);
  const before = text.slice(0, at);
  const last = text.slice(at).toLowerCase();
  if (last === "") return [];
  const [, , value = last] = /^(\w+):(.*)$/.exec(last) ?? [];
  const isFit = (word: string) =>
    word.startsWith(last) || (!last.includes(":") && word.includes(`:${value}`));
  return words
    .filter((word) => isFit(word.toLowerCase()))
    .slice(0, MAX_COUNT)
    .map((word) => before + quotedIfNeeded(word));
}

/** Returns `name:value` with quotes around a value of several words. */
function quotedIfNeeded(word: string): string {
  const [, name, value] = /^(\w+:)(.*\s.*)$/.exec(word) ?? [];
  return name ? `${name}"${value}"` : word;
}
