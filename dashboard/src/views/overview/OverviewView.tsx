import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

export function OverviewView() {
  return (
    <Page title="Overview">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
