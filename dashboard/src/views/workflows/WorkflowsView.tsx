import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

export function WorkflowsView() {
  return (
    <Page title="Workflows">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
