import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

export function FuzzingView() {
  return (
    <Page title="Fuzzing">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
