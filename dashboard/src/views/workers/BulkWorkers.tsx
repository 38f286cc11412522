import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { inWords } from "../../api/errors";
import { useMay } from "../../api/who";
import { ConfirmDialog } from "../../ui/Dialog";
import { ErrorBox } from "../../ui/ErrorBox";
import { counted } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { Menu } from "../../ui/Menu";
import { notify } from "../../ui/Notices";
import { filterOf, type WorkersSearch } from "./route";

type Worker = Schemas["FleetWorker"];
type Action = "drain" | "enable" | "disable" | "approve";

const OFF = new Set(["draining", "disabled"]);
const PENDING = "pending_approval";
const PAGE = 500;
const AT_ONCE = 4; // requests
const NAMED = 5;

interface Kind {
  title: string;
  past: string;
  /** What happens, in plain words. */
  effect: string;
  /** Those that it makes sense for. */
  fits: (status: string) => boolean;
}

const KINDS: Record<Action, Kind> = {
  drain: {
    title: "Drain",
    past: "Draining",
    effect: "They finish their jobs and take no more.",
    fits: (status) => !OFF.has(status) && status !== PENDING,
  },
  enable: {
    title: "Enable",
    past: "Enabled",
    effect: "They take jobs again, as many as they have room for.",
    fits: (status) => OFF.has(status) || status === "probation",
  },
  disable: {
    title: "Disable",
    past: "Disabled",
    effect: "They get no more jobs and may not speak to the server. Their jobs run elsewhere.",
    fits: (status) => status !== "disabled" && status !== PENDING,
  },
  approve: {
    title: "Approve",
    past: "Approved",
    effect: "They may take jobs from now on.",
    fits: (status) => status === PENDING,
  },
};

/** Actions on all workers that match the filters, with a preview of how many these are. */
export function BulkWorkers({ search }: { search: WorkersSearch }) {
  const allowed = useMay("manage-workers");
  const [action, setAction] = useState<Action>();
  if (!allowed) return null;
  return (
    <>
      <Menu
        label="Actions"
        items={(Object.keys(KINDS) as Action[]).map((one) => ({
          label: `${KINDS[one].title} all that match…`,
          danger: one === "disable",
          onSelect: () => setAction(one),
        }))}
      />
      {action && (
        <BulkDialog action={action} search={search} onClose={() => setAction(undefined)} />
      )}
    </>
  );
}

interface DialogProps {
  action: Action;
  search: WorkersSearch;
  onClose: () => void;
}

function BulkDialog({ action, search, onClose }: DialogProps) {
  const kind = KINDS[action];
  const client = useQueryClient();
  const [done, setDone] = useState(0);
  const found = useQuery({
    queryKey: ["fleet", "all", search],
    queryFn: ({ signal }) => allOf(search, signal),
    staleTime: 0,
    gcTime: 0,
    refetchOnWindowFocus: false,
  });
  const workers = (found.data ?? []).filter((one) => kind.fits(one.status));
  async function apply(): Promise<void> {
    const problems = await each(workers, action, setDone);
    const rest = problems.length
      ? `; ${counted(problems.length, "worker")} could not be changed: ${problems[0]}`
      : "";
    notify(`${kind.past} ${counted(workers.length - problems.length, "worker")}${rest}`);
    await client.invalidateQueries({ queryKey: ["fleet"] });
  }
  const many = counted(workers.length, "worker");
  return (
    <ConfirmDialog
      title={`${kind.title} all workers that match`}
      confirm={found.data ? `${kind.title} ${many}` : kind.title}
      danger={action === "disable"}
      disabled={workers.length === 0}
      onConfirm={apply}
      onClose={onClose}
    >
      {found.isPending && <Loading rows={1} label="Counting" />}
      {found.error && <ErrorBox error={found.error} />}
      {found.data && workers.length === 0 && (
        <p>None of the {counted(found.data.length, "worker")} that match can be changed so.</p>
      )}
      {workers.length > 0 && (
        <p>
          This is about <strong>{many}</strong>: {named(workers)}. {kind.effect}
        </p>
      )}
      {done > 0 && (
        <p role="status">
          {done} of {workers.length} done
        </p>
      )}
    </ConfirmDialog>
  );
}

/** Returns every worker that matches, not only those that the page has loaded. */
async function allOf(search: WorkersSearch, signal: AbortSignal): Promise<Worker[]> {
  const found: Worker[] = [];
  let after: string | undefined;
  do {
    const query = { ...filterOf(search), after, limit: PAGE };
    const page = await answer(api.GET("/api/v1/fleet", { signal, params: { query } }));
    found.push(...page.workers);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return found;
}

/** Acts on each worker, a few at once; returns why some could not be changed. */
async function each(
  workers: readonly Worker[],
  action: Action,
  onDone: (count: number) => void,
): Promise<string[]> {
  const left = [...workers];
  const problems: string[] = [];
  let done = 0;
  async function work(): Promise<void> {
    for (let next = left.shift(); next; next = left.shift()) {
      const path = { worker: next.id, action };
      try {
        await answer(api.POST("/api/v1/workers/{worker}/{action}", { params: { path } }));
      } catch (problem) {
        problems.push(inWords(problem));
      }
      done += 1;
      onDone(done);
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return problems;
}

function named(workers: readonly Worker[]): string {
  const names = workers.slice(0, NAMED).map((one) => one.name);
  const more = workers.length - names.length;
  return names.join(", ") + (more > 0 ? ` and ${more} more` : "");
}
