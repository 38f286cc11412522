import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

export function PoolView() {
  return (
    <Page title="Pool">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
