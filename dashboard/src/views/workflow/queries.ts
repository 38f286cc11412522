import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { useLiveQueries, useLiveState } from "../../live/useLive";
import { hasEnded } from "../workflows/states";

export type Workflow = Schemas["Workflow"];
export type Graph = Schemas["WorkflowGraph"];
export type GraphNode = Schemas["GraphNode"];
export type GraphStates = Schemas["GraphStates"];
export type Progress = Schemas["WorkflowProgress"];
export type Timeline = Schemas["WorkflowTimeline"];

const SLOWLY_MS = 10_000; // While the live stream says what changed.
const OFTEN_MS = 2_000;

/** Asks again for everything about a workflow when something in it changes. */
export function useWorkflowLive(id: number): void {
  useLiveQueries([`workflow:${id}`], ["workflow", id]);
}

/** Asks again for what follows from a workflow's counts when they have changed, also at its end. */
export function useFollow(workflow: Workflow): void {
  const client = useQueryClient();
  const { id } = workflow;
  const sign = `${workflow.run} ${workflow.state} ${JSON.stringify(workflow.counts)}`;
  const seen = useRef(sign);
  useEffect(() => {
    if (seen.current === sign) return;
    seen.current = sign;
    for (const part of ["progress", "states", "timeline", "jobs", "reactions"]) {
      void client.invalidateQueries({ queryKey: ["workflow", id, part] });
    }
  }, [client, id, sign]);
}

function usePace(workflow: Workflow | undefined): number | false {
  const live = useLiveState();
  if (workflow === undefined || hasEnded(workflow.state)) return false;
  return live === "on" ? SLOWLY_MS : OFTEN_MS;
}

export function useWorkflow(id: number) {
  const live = useLiveState();
  return useQuery({
    queryKey: ["workflow", id, "row"],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/workflows/{workflow}", { params: { path: { workflow: id } }, signal }),
      ),
    refetchInterval: (query) => {
      const row = query.state.data;
      if (row === undefined || hasEnded(row.state)) return false;
      return live === "on" ? SLOWLY_MS : OFTEN_MS;
    },
  });
}

export function useProgress(workflow: Workflow) {
  return useQuery({
    queryKey: ["workflow", workflow.id, "progress"],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/workflows/{workflow}/progress", {
          params: { path: { workflow: workflow.id } },
          signal,
        }),
      ),
    refetchInterval: usePace(workflow),
  });
}

/** The graph with positions: asked for again only when its structure or the open groups change. */
export function useGraph(id: number, opened: string[], version: string | undefined) {
  return useQuery({
    queryKey: ["graph", id, opened, version ?? ""],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/workflows/{workflow}/graph", {
          params: { path: { workflow: id }, query: { opened } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function useGraphStates(workflow: Workflow, opened: string[], enabled: boolean) {
  const pace = usePace(workflow);
  return useQuery({
    queryKey: ["workflow", workflow.id, "states", opened],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/workflows/{workflow}/graph/states", {
          params: { path: { workflow: workflow.id }, query: { opened } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: pace,
    enabled,
  });
}

export interface Window {
  by: "worker" | "name";
  since: number;
  until: number;
  first: number;
}

export function useTimeline(workflow: Workflow, window: Window) {
  return useQuery({
    queryKey: ["workflow", workflow.id, "timeline", window],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/workflows/{workflow}/timeline", {
          params: { path: { workflow: workflow.id }, query: { ...window, limit: 100 } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: usePace(workflow),
  });
}
