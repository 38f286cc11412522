import { Link } from "@tanstack/react-router";
import { may, type WhoAmI } from "../api/who";
import { Icon } from "../ui/Icon";
import styles from "./Navigation.module.css";
import { GROUPS } from "./places";

interface Props {
  who: WhoAmI;
  onGo?: () => void;
}

/** The views, in groups. */
export function Navigation({ who, onGo }: Props) {
  return (
    <nav aria-label="Views" className={styles.nav}>
      {GROUPS.map((group) => {
        const places = group.places.filter((place) => !place.needs || may(who, place.needs));
        if (places.length === 0) return null;
        return (
          <div key={group.label ?? ""} className={styles.group}>
            {group.label && <p className={styles.label}>{group.label}</p>}
            {places.map((place) => (
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
        );
      })}
    </nav>
  );
}
