import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

export function WorkerView() {
  return (
    <Page title="Worker">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
