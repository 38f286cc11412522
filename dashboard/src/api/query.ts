import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { ApiError, isTemporary } from "./errors";

/** Returns the cache of everything that was asked of the server. */
export function makeQueryClient(onSignedOut: () => void): QueryClient {
  function notice(problem: unknown): void {
    if (problem instanceof ApiError && problem.status === 401) onSignedOut();
  }
  return new QueryClient({
    queryCache: new QueryCache({ onError: notice }),
    mutationCache: new MutationCache({ onError: notice }),
    defaultOptions: {
      queries: {
        staleTime: 5_000, // The live stream says what changed sooner.
        gcTime: 300_000,
        refetchOnWindowFocus: true,
        retry: (count, problem) => count < 2 && problem instanceof ApiError && isTemporary(problem),
      },
      mutations: { retry: false },
    },
  });
}
