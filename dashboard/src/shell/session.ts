import type { AnyRouter } from "@tanstack/react-router";
import { answer, api } from "../api/client";
import { live } from "../live/stream";

/** Shows the sign-in page, which leads back to where the person was. */
export function goToSignIn(router: AnyRouter, wasSignedIn: boolean): void {
  const here = router.state.location;
  if (here.pathname === "/sign-in") return;
  live.stop();
  const search = { next: here.href, ended: wasSignedIn || undefined };
  void router.navigate({ to: "/sign-in", search, replace: true } as never);
}

/** A token, or the code of a link; `replace`: also if somebody else is signed in. */
export type Secret = { token: string } | { code: string; replace?: boolean };

/** Exchanges a token, or the code of a sign-in link, for a session in a cookie. */
export async function signIn(secret: Secret): Promise<void> {
  await answer(api.POST("/auth/session", { body: { replace: false, ...secret } }));
}

export async function signOut(): Promise<void> {
  await answer(api.POST("/auth/logout"));
  live.stop();
}
