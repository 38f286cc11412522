import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Schemas } from "../../api/client";
import { useMay } from "../../api/who";
import { Button } from "../../ui/Button";
import { Empty } from "../../ui/Empty";
import { ErrorBox } from "../../ui/ErrorBox";
import { SelectField, TextField } from "../../ui/Field";
import { FilterBar } from "../../ui/FilterBar";
import { Loading } from "../../ui/Loading";
import { Page } from "../../ui/Page";
import { PlainTable } from "../../ui/PlainTable";
import { StateBadge } from "../../ui/StateBadge";
import { Time } from "../../ui/Time";
import { CreateDialog } from "./CreateDialog";
import { type TokensSearch, tokensRoute } from "./route";
import { TokenActions } from "./TokenActions";

type Token = Schemas["TokenInfo"];
const MAX_COUNT = 500;

/** Who may speak to the server: tokens of people and programs, sessions, and workers. */
export function TokensView() {
  const search = tokensRoute.useSearch();
  const navigate = tokensRoute.useNavigate();
  const [creating, setCreating] = useState(false);
  const mayCreate = useMay("manage-tokens");
  const found = useQuery({
    queryKey: ["tokens"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/tokens", { signal })),
  });
  const change = (next: Partial<TokensSearch>) =>
    void navigate({ search: (before) => ({ ...before, ...next }), replace: true });
  const tokens = found.data?.tokens.filter((one) => takes(search, one)) ?? [];
  return (
    <Page
      title="Tokens"
      actions={
        mayCreate && (
          <Button kind="primary" icon="submit" onClick={() => setCreating(true)}>
            Create a token
          </Button>
        )
      }
    >
      <FilterBar>
        <TextField
          label="Name"
          hideLabel
          placeholder="Part of a name"
          value={search.name ?? ""}
          onChange={(event) => change({ name: event.target.value || undefined })}
        />
        <SelectField
          label="Which tokens"
          hideLabel
          value={search.show ?? "valid"}
          onChange={(event) => change({ show: event.target.value === "valid" ? undefined : "all" })}
        >
          <option value="valid">valid tokens</option>
          <option value="all">also ended ones, sessions and workers</option>
        </SelectField>
      </FilterBar>
      {found.error && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {found.isPending && <Loading />}
      {found.data && tokens.length === 0 && (
        <Empty title="No such token">
          <p>Change the filters to see others.</p>
        </Empty>
      )}
      {tokens.length > 0 && (
        <TokenTable tokens={tokens.slice(0, MAX_COUNT)} mayChange={mayCreate} />
      )}
      {creating && <CreateDialog onClose={() => setCreating(false)} />}
    </Page>
  );
}

function TokenTable({ tokens, mayChange }: { tokens: readonly Token[]; mayChange: boolean }) {
  return (
    <PlainTable
      label="Tokens"
      head={["Name", "Role", "Namespaces", "Created", "Used", "Ends", ""]}
      rows={tokens.map((token) => ({
        key: String(token.id),
        cells: [
          <>
            {token.name} {hasEnded(token) && <StateBadge state="disabled" label="ended" />}
            {token.kind === "session" && <StateBadge state="waiting" label="session" />}
          </>,
          token.role,
          <Namespaces key="namespaces" names={token.namespaces} />,
          <Time key="created" at={token.created_at} />,
          token.last_used_at ? <Time key="used" at={token.last_used_at} /> : "never",
          token.revoked_at || token.expires_at ? (
            <Time key="ends" at={token.revoked_at ?? token.expires_at} />
          ) : (
            "never"
          ),
          hasEnded(token) || !mayChange ? null : <TokenActions key="actions" token={token} />,
        ],
      }))}
    />
  );
}

function takes(search: TokensSearch, token: Token): boolean {
  const name = (search.name ?? "").toLowerCase();
  if (!token.name.toLowerCase().includes(name)) return false;
  if (search.show === "all") return true;
  return !hasEnded(token) && token.kind === "token" && token.role !== "worker";
}

function hasEnded(token: Token): boolean {
  if (token.revoked_at) return true;
  return token.expires_at !== null && Date.parse(token.expires_at) <= Date.now();
}

const NAMED = 3;

/** The namespaces of a token: the first ones, and how many more. */
function Namespaces({ names }: { names: readonly string[] }) {
  if (names.length === 0) return "all";
  if (names.length <= NAMED + 1) return names.join(", ");
  return (
    <span title={names.join(", ")}>
      {names.slice(0, NAMED).join(", ")} and {names.length - NAMED} more
    </span>
  );
}
