import { Link } from "@tanstack/react-router";
import { Empty } from "./Empty";
import { Page } from "./Page";

/** Returns the number in an address; nothing if it is no number of a job or workflow. */
export function numberIn(text: string): number | undefined {
  const number = /^\d+$/.test(text) ? Number(text) : 0;
  return Number.isSafeInteger(number) && number > 0 ? number : undefined;
}

/** What is shown at an address such as /jobs/abc. */
export function NoSuchNumber({ kind, text }: { kind: "job" | "workflow"; text: string }) {
  return (
    <Page title={`No such ${kind}`}>
      <Empty title={`“${text}” is not the number of a ${kind}`}>
        <Link to={kind === "job" ? "/jobs" : "/workflows"}>Go to the list of {kind}s</Link>
      </Empty>
    </Page>
  );
}
