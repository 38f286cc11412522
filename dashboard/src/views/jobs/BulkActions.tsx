import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { useMay } from "../../api/who";
import { ConfirmDialog } from "../../ui/Dialog";
import { ErrorBox } from "../../ui/ErrorBox";
import { TextField } from "../../ui/Field";
import { counted, sentence } from "../../ui/format";
import { Loading } from "../../ui/Loading";
import { Menu } from "../../ui/Menu";
import { notify } from "../../ui/Notices";
import { bulkWhere, type Where } from "./filter";

type Action = Schemas["BulkRequest"]["action"];

const VERBS: Record<Action, { title: string; past: string; none: string }> = {
  cancel: { title: "Cancel", past: "Canceled", none: "None can be canceled: they have ended." },
  retry: {
    title: "Retry",
    past: "Retried",
    none: "None can be retried: only jobs that ended without completing, and were not retried yet.",
  },
  prioritize: {
    title: "Prioritize",
    past: "Changed the priority of",
    none: "None can be prioritized: they have ended.",
  },
};

interface Props {
  where: Where;
  onDone: () => void;
}

/** Actions on all jobs that match the filter, with a preview of how many these are. */
export function BulkActions({ where, onDone }: Props) {
  const mayChange = useMay("change-jobs", where.namespace);
  const mayRaise = useMay("raise-priorities", where.namespace);
  const [action, setAction] = useState<Action>();
  const isFiltered = Object.values(where).some((value) => value !== undefined);
  if (!mayChange) return null;
  const offered: Action[] = mayRaise ? ["cancel", "retry", "prioritize"] : ["cancel", "retry"];
  return (
    <>
      <Menu
        label="Actions"
        note={
          isFiltered ? undefined : "Filter the list first: without a filter, this is every job."
        }
        items={offered.map((one) => ({
          label: `${VERBS[one].title} all that match…`,
          danger: one === "cancel",
          disabled: !isFiltered,
          onSelect: () => setAction(one),
        }))}
      />
      {action && (
        <BulkDialog
          action={action}
          where={where}
          onClose={() => setAction(undefined)}
          onDone={onDone}
        />
      )}
    </>
  );
}

function BulkDialog(props: Props & { action: Action; onClose: () => void }) {
  const { action, where, onClose, onDone } = props;
  const [reason, setReason] = useState("Canceled from the dashboard");
  const [level, setLevel] = useState("10");
  const body = { action, where: bulkWhere(where) };
  const preview = useQuery({
    queryKey: ["bulk-preview", body],
    queryFn: () => answer(api.POST("/api/v1/jobs/bulk/preview", { body })),
    staleTime: 0,
    gcTime: 0,
  });
  async function apply(): Promise<void> {
    const shown = preview.data;
    if (!shown) return;
    const adjustment = action === "prioritize" ? Number(level) : undefined;
    // What was counted, and no more: others may have come to match meanwhile.
    let left = shown.exact ? shown.count : undefined;
    let after = shown.after;
    let applied = 0;
    let refused = 0;
    do {
      const request = { action, where: shown.where, reason, adjustment, after, at_most: left };
      const done = await answer(api.POST("/api/v1/jobs/bulk", { body: request }));
      applied += done.applied;
      refused += done.refusals;
      if (left !== undefined) left -= done.applied;
      after = left === 0 ? 0 : (done.next ?? 0);
    } while (after);
    const rest = refused ? `; ${counted(refused, "job")} could not be changed` : "";
    notify(`${VERBS[action].past} ${counted(applied, "job")}${rest}`);
    onDone();
  }
  const many = preview.data && howMany(preview.data);
  const isNone = preview.data?.exact === true && preview.data.count === 0;
  return (
    <ConfirmDialog
      title={`${VERBS[action].title} all jobs that match`}
      confirm={many && !isNone ? `${VERBS[action].title} ${many}` : VERBS[action].title}
      danger={action === "cancel"}
      disabled={!preview.data || isNone}
      onConfirm={apply}
      onClose={onClose}
    >
      {preview.isPending && <Loading rows={1} label="Counting" />}
      {preview.error && <ErrorBox error={preview.error} />}
      {preview.data && (
        <p>
          {isNone ? (
            VERBS[action].none
          ) : (
            <>
              <strong>{sentence(many ?? "")}</strong>
              {preview.data.only_own && " that you submitted; those of others stay as they are"}.
              Jobs that match only from now on are left alone.
            </>
          )}
        </p>
      )}
      {action === "cancel" && (
        <TextField
          label="Reason"
          value={reason}
          onChange={(event) => setReason(event.target.value)}
        />
      )}
      {action === "prioritize" && (
        <TextField
          label="Adjustment of the priority"
          type="number"
          value={level}
          onChange={(event) => setLevel(event.target.value)}
        />
      )}
    </ConfirmDialog>
  );
}

function howMany(found: Schemas["PreviewReply"]): string {
  if (found.exact) return counted(found.count, "job");
  if (found.estimate) return `about ${counted(found.estimate, "job")}`;
  return `at least ${counted(found.count, "job")}`;
}
