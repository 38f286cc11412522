import { useQuery } from "@tanstack/react-query";
import { answer, api } from "../../api/client";

/** Queues and namespaces that have had jobs, for fields that take their names. */
export function useKnownNames(): { queue: string[]; namespace: string[] } {
  const queues = useQuery({
    queryKey: ["queues"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/queues", { signal })),
    staleTime: 60_000,
  });
  const namespaces = useQuery({
    queryKey: ["namespaces"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/namespaces", { signal })),
    staleTime: 60_000,
  });
  return {
    queue: (queues.data?.queues ?? []).map((one) => one.name),
    namespace: namespaces.data?.namespaces ?? [],
  };
}
