import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

export function QueuesView() {
  return (
    <Page title="Queues">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
