import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useCallback, useEffect, useRef, useState } from "react";
import { answer, api } from "../api/client";
import { ApiError, inWords } from "../api/errors";
import { API_BASE, BASE } from "../base";
import { Button } from "../ui/Button";
import { TextField } from "../ui/Field";
import styles from "./SignIn.module.css";
import { type Secret, signIn } from "./session";
import { signInRoute } from "./signInRoute";

const MAX_CHARACTERS = 1_000; // of an address to which the identity provider leads back
const OTHER_SESSION = "other_session"; // The code of the refusal.

/** A link of somebody else than the one who is signed in, and what the server said about it. */
interface Offered {
  code: string;
  why: string;
}

/** Signs in with a token, with the code of a link, or at the identity provider. */
export function SignIn() {
  const { next, ended } = signInRoute.useSearch();
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<string>();
  const [offered, setOffered] = useState<Offered>();
  const [busy, setBusy] = useState(false);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const ways = useQuery({
    queryKey: ["sign-in-ways"],
    queryFn: () => answer(api.GET("/auth/ways")),
    retry: false,
  });
  const enter = useCallback(
    async (secret: Secret) => {
      setBusy(true);
      setProblem(undefined);
      try {
        await signIn(secret);
        queries.clear();
        await navigate({ href: inside(next), replace: true } as never);
      } catch (error) {
        setBusy(false);
        if ("code" in secret && error instanceof ApiError && error.code === OTHER_SESSION)
          setOffered({ code: secret.code, why: error.message });
        else if ("code" in secret && (await isSignedIn()))
          await navigate({ href: inside(next), replace: true } as never);
        else setProblem(inWords(error));
      }
    },
    [navigate, next, queries],
  );
  useLinkCode(enter);
  useEffect(() => {
    document.title = "Sign in · Windlass";
  }, []);
  function onSubmit(event: FormEvent): void {
    event.preventDefault();
    if (token.trim()) void enter({ token: token.trim() });
  }
  if (offered) {
    return (
      <main className={styles.page}>
        <div className={styles.card}>
          <h1>Sign in as somebody else?</h1>
          <p>{offered.why}</p>
          <p>Go on only if you asked for this link yourself: others would see what you do.</p>
          <Button kind="primary" onClick={() => void navigate({ to: "/", replace: true })}>
            Stay signed in
          </Button>
          <Button busy={busy} onClick={() => void enter({ code: offered.code, replace: true })}>
            Use the link
          </Button>
        </div>
      </main>
    );
  }
  return (
    <main className={styles.page}>
      <form className={styles.card} onSubmit={onSubmit}>
        <h1>Sign in to Windlass</h1>
        {ended && (
          <p role="status">
            You are signed out: your session has ended, or your token was revoked. Sign in again to
            go on where you were.
          </p>
        )}
        <TextField
          label="Token"
          type="password"
          name="token"
          autoComplete="current-password"
          autoFocus
          value={token}
          problem={problem}
          hint={
            <>
              On the server's machine, <code>windlass dashboard</code> prints a link that signs you
              in.
            </>
          }
          onChange={(event) => setToken(event.target.value)}
        />
        <Button kind="primary" type="submit" busy={busy} disabled={!token.trim()}>
          Sign in
        </Button>
        {ways.data?.oidc && (
          <a
            className={styles.other}
            href={`${API_BASE}/auth/login?to=${encodeURIComponent(onServer(inside(next)))}`}
          >
            Sign in with your organisation
          </a>
        )}
      </form>
    </main>
  );
}

/** Returns whether there is a session already: a link that was used once changes nothing then. */
async function isSignedIn(): Promise<boolean> {
  const { response } = await api.GET("/api/v1/whoami");
  return response.ok;
}

/** Signs in with the code in the fragment of a link, which servers and logs never see. */
function useLinkCode(enter: (secret: { code: string }) => Promise<void>): void {
  const used = useRef(false);
  useEffect(() => {
    const code = new URLSearchParams(window.location.hash.slice(1)).get("code");
    if (!code || used.current) return;
    used.current = true;
    window.history.replaceState(window.history.state, "", window.location.pathname);
    void enter({ code });
  }, [enter]);
}

/** Returns an address on this page only: nobody is led elsewhere by a link to the sign-in. */
function inside(next: string | undefined): string {
  if (!next?.startsWith("/") || next.startsWith("//") || next.includes("\\")) return "/";
  return next;
}

/** Returns an address of this page as the server takes it: with its prefix, short and plain. */
function onServer(address: string): string {
  const full = address.startsWith(BASE) ? address : BASE + address.slice(1);
  return full.length <= MAX_CHARACTERS && /^[!-~]*$/.test(full) ? full : BASE;
}
