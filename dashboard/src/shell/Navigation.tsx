import { Link } from "@tanstack/react-router";
import { API_BASE } from "../base";
import { Icon } from "../ui/Icon";
import styles from "./Navigation.module.css";
import type { Group } from "./places";

interface Props {
  groups: readonly Group[];
  onGo?: () => void;
}

/** The views, in groups. */
export function Navigation({ groups, onGo }: Props) {
  return (
    <nav aria-label="Views" className={styles.nav}>
      {groups.map((group) => (
        <div key={group.label ?? ""} className={styles.group}>
          {group.label && <p className={styles.label}>{group.label}</p>}
          {group.places.map((place) =>
            place.isBeside ? (
              <a key={place.to} href={API_BASE + place.to} className={styles.link}>
                <Icon name={place.icon} />
                {place.label}
              </a>
            ) : (
              <Link
                key={place.to}
                to={place.to as "/"}
                activeOptions={{ exact: place.to === "/", includeSearch: false }}
                className={styles.link}
                onClick={onGo}
              >
                <Icon name={place.icon} />
                {place.label}
              </Link>
            ),
          )}
        </div>
      ))}
    </nav>
  );
}
