import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

export function AuditView() {
  return (
    <Page title="Audit">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
