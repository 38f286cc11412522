import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

export function JobView() {
  return (
    <Page title="Job">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
