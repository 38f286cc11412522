import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

export function SchedulesView() {
  return (
    <Page title="Schedules">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
