import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

export function QuestionsView() {
  return (
    <Page title="Questions">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
