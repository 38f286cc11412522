import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

export function WorkflowView() {
  return (
    <Page title="Workflow">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
