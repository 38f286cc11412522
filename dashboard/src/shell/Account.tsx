import { useQueryClient } from "@tanstack/react-query";
import { useRouter } from "@tanstack/react-router";
import type { WhoAmI } from "../api/who";
import { IconButton } from "../ui/Button";
import type { IconName } from "../ui/Icon";
import { notifyError } from "../ui/Notices";
import styles from "./Account.module.css";
import { signOut } from "./session";
import { setTheme, type Theme, useTheme } from "./theme";

const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const ICONS: Record<Theme, IconName> = { system: "system", light: "sun", dark: "moon" };

/** Who is signed in, the theme, and the way out. */
export function Account({ who }: { who: WhoAmI }) {
  const theme = useTheme();
  const queries = useQueryClient();
  const router = useRouter();
  async function leave(): Promise<void> {
    try {
      await signOut();
      queries.clear();
      await router.navigate({ to: "/sign-in" });
    } catch (problem) {
      notifyError(problem);
    }
  }
  const where = who.namespaces.length > 0 ? who.namespaces.join(", ") : "all namespaces";
  return (
    <div className={styles.account}>
      <div className={styles.who}>
        <span className={styles.name} title={who.name}>
          {who.name}
        </span>
        <span className={styles.role} title={where}>
          {who.role}, {where}
        </span>
      </div>
      <IconButton
        icon={ICONS[theme]}
        label={`Theme: ${theme}. Change to ${NEXT[theme]}`}
        small
        onClick={() => setTheme(NEXT[theme])}
      />
      <IconButton icon="signOut" label="Sign out" small onClick={() => void leave()} />
    </div>
  );
}
