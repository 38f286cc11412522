import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

export function JobsView() {
  return (
    <Page title="Jobs">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
