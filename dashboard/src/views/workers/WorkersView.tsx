import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

export function WorkersView() {
  return (
    <Page title="Workers">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
