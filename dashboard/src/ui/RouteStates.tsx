import { Link, useRouter } from "@tanstack/react-router";
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
  return (
    <Page title="Something went wrong">
      <ErrorBox error={error} onRetry={() => void router.invalidate()} />
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
