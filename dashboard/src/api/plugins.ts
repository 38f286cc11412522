import { useQuery } from "@tanstack/react-query";
import { answer, api, type Schemas } from "./client";

export type PluginPage = Schemas["PluginPageInfo"];

const NONE: readonly PluginPage[] = [];

/** Returns the pages that the plug-ins of this server add; none while they are not known. */
export function usePluginPages(): readonly PluginPage[] {
  const found = useQuery({
    queryKey: ["plugins"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/plugins", { signal })),
    staleTime: Number.POSITIVE_INFINITY,
    select: (list) => list.plugins.flatMap((one) => (one.page ? [one.page] : [])),
  });
  return found.data ?? NONE;
}
