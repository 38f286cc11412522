import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { answer, api, type Schemas } from "../../api/client";
import { useMay } from "../../api/who";
import { parseSearch } from "../../search";
import { Button } from "../../ui/Button";
import { count, sentence } from "../../ui/format";
import { Icon } from "../../ui/Icon";
import { notify, notifyError } from "../../ui/Notices";
import { Section } from "../../ui/Page";
import styles from "./Overview.module.css";

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
  const items = found.data?.items ?? [];
  if (!found.data) return null;
  if (items.length === 0) {
    return (
      <p className={styles.calm}>
        <Icon name="check" /> Nothing needs attention.
      </p>
    );
  }
  return (
    <Section title="Needs attention">
      <ul className={styles.attention}>
        {items.map((item) => (
          <li key={`${item.kind} ${item.link} ${item.title}`} data-severity={item.severity}>
            <Icon name={item.severity === "info" ? "info" : "warning"} />
            <div className={styles.what}>
              <ItemLink item={item} />
              <p>{sentence(item.reason)}</p>
            </div>
            {item.help && <HelpButton help={item.help} />}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function ItemLink({ item }: { item: Item }) {
  const [path = "", query = ""] = item.link.split("?");
  const place = { to: `/${path}`, search: parseSearch(query) } as unknown as { to: "/" };
  return (
    <Link {...place} className={styles.title}>
      {item.title}
      {!item.exact && ` (${count(item.count)} or more)`}
    </Link>
  );
}

function HelpButton({ help }: { help: Help }) {
  const client = useQueryClient();
  const offered = useMay(help.needs);
  const run = useMutation({
    mutationFn: () =>
      answer(api.POST(help.path as never, { body: help.body ?? undefined } as never)),
    onSuccess: () => notify(`${help.label}: done`),
    onError: notifyError,
    onSettled: () => client.invalidateQueries({ queryKey: ["attention"] }),
  });
  if (!offered) return null;
  return (
    <Button small busy={run.isPending} onClick={() => run.mutate()}>
      {help.label}
    </Button>
  );
}
