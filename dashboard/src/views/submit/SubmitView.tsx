import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

export function SubmitView() {
  return (
    <Page title="Submit">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
