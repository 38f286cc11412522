import { Link, useRouter } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { isLoadFailure } from "../api/errors";
import { useWho } from "../api/who";
import { Empty } from "./Empty";
import { ErrorBox } from "./ErrorBox";
import { Loading } from "./Loading";
import { Page } from "./Page";

/** What a view shows while it is loaded. */
export function RoutePending() {
  return (
    <Page title="Loading" heading={<span className="visually-hidden">Loading</span>}>
      <Loading rows={6} />
    </Page>
  );
}

export function RouteFailed({ error }: { error: unknown }) {
  const router = useRouter();
  const who = useWho();
  const wasAway = useRef(false);
  const isAway = who.isError;
  useEffect(() => {
    // The router does not ask for missing code again; a page that is loaded anew does.
    if (!isAway && wasAway.current && isLoadFailure(error)) window.location.reload();
    wasAway.current = isAway;
  }, [isAway, error]);
  async function retry(): Promise<void> {
    if (!isLoadFailure(error)) return router.invalidate();
    const found = await who.refetch();
    if (found.isSuccess) window.location.reload();
  }
  return (
    <Page title="Something went wrong">
      <ErrorBox error={error} onRetry={() => void retry()} />
    </Page>
  );
}

export function NotFound() {
  return (
    <Page title="No such page">
      <Empty title="There is nothing at this address">
        <Link to="/">Go to the overview</Link>
      </Empty>
    </Page>
  );
}
