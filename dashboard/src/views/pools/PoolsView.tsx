import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

export function PoolsView() {
  return (
    <Page title="Pools">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
