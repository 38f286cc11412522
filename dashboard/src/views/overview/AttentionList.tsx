import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { useMay } from "../../api/who";
import { parseSearch } from "../../search";
import { Button, SMALL_LINK } from "../../ui/Button";
import { count, counted, sentence } from "../../ui/format";
import { Icon } from "../../ui/Icon";
import { Menu } from "../../ui/Menu";
import { notify, notifyError } from "../../ui/Notices";
import { Section } from "../../ui/Page";
import { Time } from "../../ui/Time";
import styles from "./Overview.module.css";
import { SILENCES, useSilences } from "./silences";

const FEW = 12; // that are shown before somebody asks for all

type Item = Schemas["AttentionItem"];
type Help = Schemas["Help"];

/** What a person should look at, with the reason and what would help. */
export function AttentionList({ namespace }: { namespace: string | undefined }) {
  const found = useQuery({
    queryKey: ["attention", namespace],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/attention", { signal, params: { query: { namespace } } })),
    refetchInterval: 60_000,
  });
  const [isWhole, setWhole] = useState(false);
  const silences = useSilences();
  const all = found.data?.items ?? [];
  const items = all.filter((item) => !silences.silent(keyOf(item)));
  const shown = isWhole || items.length <= FEW + 1 ? items : items.slice(0, FEW);
  if (!found.data) return null;
  const silenced = all.length > items.length && (
    <p className={styles.calm}>
      {counted(all.length - items.length, "entry", "entries")} silenced in this browser.
      <Button small kind="quiet" onClick={silences.clear}>
        Show again
      </Button>
    </p>
  );
  if (items.length === 0) {
    return (
      <>
        <p className={styles.calm}>
          <Icon name="check" /> Nothing {silenced ? "else " : ""}needs attention.
        </p>
        {silenced}
      </>
    );
  }
  return (
    <Section title="Needs attention">
      <ul className={styles.attention}>
        {shown.map((item) => (
          <li key={`${item.kind} ${item.link} ${item.title}`} data-severity={item.severity}>
            <Icon name={item.severity === "info" ? "info" : "warning"} />
            <div className={styles.what}>
              <ItemLink item={item} />
              <p>{sentence(item.reason)}</p>
              <When item={item} />
            </div>
            <div className={styles.steps}>
              <NextStep item={item} />
              <Menu
                small
                kind="quiet"
                label="Silence"
                items={SILENCES.map(({ label, until }) => ({
                  label,
                  onSelect: () => silences.silence(keyOf(item), until(new Date())),
                }))}
              />
            </div>
          </li>
        ))}
      </ul>
      {shown.length < items.length && (
        <div>
          <Button small onClick={() => setWhole(true)}>
            Show {items.length - shown.length} more
          </Button>
        </div>
      )}
      {silenced}
    </Section>
  );
}

function keyOf(item: Item): string {
  return item.key || `${item.kind} ${item.link}`;
}

/** When the first and the last of them failed; once if that is the same. */
function When({ item: { first_at, last_at, count } }: { item: Item }) {
  if (!first_at || !last_at) return null;
  return (
    <p className={styles.times}>
      {count > 1 && (
        <>
          first <Time at={first_at} />, last{" "}
        </>
      )}
      <Time at={last_at} />
    </p>
  );
}

/** Returns what a `Link` needs for a view that the server names. */
function placeOf(link: string): { to: "/" } {
  const [path = "", query = ""] = link.split("?");
  return { to: `/${path}`, search: parseSearch(query) } as unknown as { to: "/" };
}

/** A request that helps, for those who may make it, and where to go on. */
function NextStep({ item: { help, look } }: { item: Item }) {
  const may = useMay(help?.needs ?? "");
  return (
    <>
      {help && may && <HelpButton help={help} />}
      {look && (
        <Link {...placeOf(look.link)} className={SMALL_LINK}>
          {look.label}
        </Link>
      )}
    </>
  );
}

function ItemLink({ item }: { item: Item }) {
  return (
    <Link {...placeOf(item.link)} className={styles.title}>
      {item.title}
      {!item.exact && ` (${count(item.count)} or more)`}
    </Link>
  );
}

function HelpButton({ help }: { help: Help }) {
  const client = useQueryClient();
  const run = useMutation({
    mutationFn: () => act(help),
    onSuccess: (done) => notify(`${help.label}: ${done}`),
    onError: notifyError,
    onSettled: () => client.invalidateQueries({ queryKey: ["attention"] }),
  });
  return (
    <Button small busy={run.isPending} onClick={() => run.mutate()}>
      {help.label}
    </Button>
  );
}

/** Makes the request, and goes on with it as long as it is about many jobs; returns what it did. */
async function act(help: Help): Promise<string> {
  let applied = 0;
  let after: number | null | undefined;
  do {
    const body = help.body && { ...help.body, ...(after ? { after } : {}) };
    const call = api.POST(help.path as never, { body: body ?? undefined } as never);
    const done = (await answer(call)) as Partial<Schemas["BulkReply"]> | undefined;
    if (typeof done?.applied === "number") applied += done.applied;
    after = done?.next;
  } while (after);
  return applied > 0 ? counted(applied, "job") : "done";
}
