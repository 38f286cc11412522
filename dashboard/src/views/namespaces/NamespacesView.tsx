import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

export function NamespacesView() {
  return (
    <Page title="Namespaces">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
