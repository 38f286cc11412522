import { Link } from "@tanstack/react-router";
import type { WhoAmI } from "../api/who";
import { Icon } from "../ui/Icon";
import styles from "./Navigation.module.css";
import { groupsFor } from "./places";

interface Props {
  who: WhoAmI;
  onGo?: () => void;
}

/** The views, in groups. */
export function Navigation({ who, onGo }: Props) {
  return (
    <nav aria-label="Views" className={styles.nav}>
      {groupsFor(who).map((group) => (
        <div key={group.label ?? ""} className={styles.group}>
          {group.label && <p className={styles.label}>{group.label}</p>}
          {group.places.map((place) => (
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
          ))}
        </div>
      ))}
    </nav>
  );
}
