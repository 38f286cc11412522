import { Link, Outlet, useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { ApiError } from "../api/errors";
import { usePluginPages } from "../api/plugins";
import { may, useWho, type WhoAmI } from "../api/who";
import { IconButton } from "../ui/Button";
import { ErrorBox } from "../ui/ErrorBox";
import { Icon } from "../ui/Icon";
import { Kbd } from "../ui/Kbd";
import { Account } from "./Account";
import { Connection } from "./Connection";
import { KeysDialog } from "./KeysDialog";
import { type Shortcut, useShortcuts } from "./keys";
import { LiveMark } from "./LiveMark";
import { Navigation } from "./Navigation";
import { groupsFor, type Place } from "./places";
import { SearchDialog } from "./SearchDialog";
import styles from "./Shell.module.css";
import { TimeTravel } from "./TimeTravel";
import { isDark, setTheme } from "./theme";

/** The frame around every view. */
export function Shell() {
  const who = useWho();
  if (who.data) return <Frame who={who.data} />;
  if (who.error && !isSignedOut(who.error)) {
    return (
      <main className={styles.waiting}>
        <ErrorBox error={who.error} onRetry={() => void who.refetch()} />
      </main>
    );
  }
  return <main className={styles.waiting} aria-busy="true" aria-label="Loading" />;
}

function isSignedOut(problem: Error): boolean {
  return problem instanceof ApiError && problem.status === 401; // The sign-in page follows.
}

type Open = "search" | "keys" | "navigation" | undefined;

function Frame({ who }: { who: WhoAmI }) {
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  const pages = usePluginPages();
  const groups = useMemo(() => groupsFor(who, pages), [who, pages]);
  const places = useMemo(() => groups.flatMap((group) => group.places), [groups]);
  const shortcuts = useFrameShortcuts(who, places, setOpen);
  useShortcuts(shortcuts);
  return (
    <div className={styles.frame}>
      <a className={styles.skip} href="#content">
        Skip to the content
      </a>
      <aside className={styles.side} data-open={open === "navigation" || undefined}>
        <Link to="/" className={styles.brand} onClick={close}>
          <Mark />
          Windlass
        </Link>
        <Navigation groups={groups} onGo={close} />
        <div className={styles.sideFoot}>
          <Account who={who} />
        </div>
      </aside>
      {open === "navigation" && (
        <button
          type="button"
          className={styles.veil}
          aria-label="Close the navigation"
          onClick={close}
        />
      )}
      <div className={styles.main}>
        <header className={styles.header}>
          <IconButton
            className={styles.burger}
            icon="menu"
            label="Open the navigation"
            aria-expanded={open === "navigation"}
            onClick={() => setOpen("navigation")}
          />
          <button
            type="button"
            aria-label="Search"
            className={styles.search}
            onClick={() => setOpen("search")}
          >
            <Icon name="search" size={14} />
            <span className={styles.searchText}>Search</span>
            <Kbd>/</Kbd>
          </button>
          <div className={styles.travel}>
            <TimeTravel />
          </div>
          <LiveMark />
          {may(who, "submit-jobs") && (
            <Link to="/submit" className={styles.submit} aria-label="Submit a job">
              <Icon name="submit" size={14} />
              <span className={styles.submitText}>Submit</span>
            </Link>
          )}
          <IconButton
            className={styles.keys}
            icon="keyboard"
            label="Keys"
            onClick={() => setOpen("keys")}
          />
        </header>
        <Connection />
        <main id="content" className={styles.content} tabIndex={-1}>
          <Outlet />
        </main>
      </div>
      {open === "search" && <SearchDialog places={places} onClose={close} />}
      {open === "keys" && <KeysDialog shortcuts={shortcuts} onClose={close} />}
    </div>
  );
}

function useFrameShortcuts(
  who: WhoAmI,
  places: readonly Place[],
  setOpen: (open: Open) => void,
): Shortcut[] {
  const navigate = useNavigate();
  return useMemo(() => {
    const go = (to: string) => () => void navigate({ to } as never);
    const found: Shortcut[] = [
      { keys: "/", label: "Search", run: () => setOpen("search") },
      { keys: "?", label: "List the keys", run: () => setOpen("keys") },
      { keys: "d", label: "Dark or light", run: () => setTheme(isDark() ? "light" : "dark") },
    ];
    if (may(who, "submit-jobs")) {
      found.push({ keys: "c", label: "Submit a job", run: go("/submit") });
    }
    for (const place of places) {
      if (!place.key) continue;
      found.push({ keys: `g ${place.key}`, label: `Go to ${place.label}`, run: go(place.to) });
    }
    return found;
  }, [who, places, navigate, setOpen]);
}

function Mark() {
  return (
    <svg width="20" height="20" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="7" fill="var(--accent)" />
      <g fill="none" stroke="var(--on-accent)" strokeWidth="2.8" strokeLinecap="round">
        <circle cx="16" cy="16" r="5.4" />
        <path d="M16 5v5.2M16 21.8V27M5 16h5.2M21.8 16H27" />
      </g>
    </svg>
  );
}
