import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

export function TokensView() {
  return (
    <Page title="Tokens">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
