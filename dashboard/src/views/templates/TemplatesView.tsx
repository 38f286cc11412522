import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

export function TemplatesView() {
  return (
    <Page title="Templates">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
