import { may, type WhoAmI } from "../api/who";
import type { IconName } from "../ui/Icon";

/** A view that the navigation leads to. */
export interface Place {
  to: string;
  label: string;
  icon: IconName;
  /** `g` and then this key goes there. */
  key: string;
  /** Only callers who may do this are shown it. */
  needs?: string;
}

export interface Group {
  label?: string;
  places: readonly Place[];
}

const GROUPS: readonly Group[] = [
  {
    places: [
      { to: "/", label: "Overview", icon: "overview", key: "o" },
      { to: "/jobs", label: "Jobs", icon: "jobs", key: "j" },
      { to: "/workflows", label: "Workflows", icon: "workflows", key: "f" },
      { to: "/questions", label: "Questions", icon: "questions", key: "u" },
    ],
  },
  {
    label: "Fleet",
    places: [
      { to: "/workers", label: "Workers", icon: "workers", key: "w" },
      { to: "/pools", label: "Pools", icon: "pools", key: "p" },
      { to: "/queues", label: "Queues", icon: "queues", key: "q" },
    ],
  },
  {
    label: "Plans",
    places: [
      { to: "/schedules", label: "Schedules", icon: "schedules", key: "s" },
      { to: "/templates", label: "Templates", icon: "templates", key: "t" },
      { to: "/fuzzing", label: "Fuzzing", icon: "fuzzing", key: "z", needs: "read-fuzzing" },
    ],
  },
  {
    label: "Access",
    places: [
      { to: "/namespaces", label: "Namespaces", icon: "namespaces", key: "n" },
      { to: "/tokens", label: "Tokens", icon: "tokens", key: "k", needs: "manage-tokens" },
      { to: "/audit", label: "Audit", icon: "audit", key: "a", needs: "read-audit" },
    ],
  },
];

/** Returns the views that a caller is offered, in groups that are not empty. */
export function groupsFor(who: WhoAmI): Group[] {
  const offered = GROUPS.map((group) => ({
    ...group,
    places: group.places.filter((place) => !place.needs || may(who, place.needs)),
  }));
  return offered.filter((group) => group.places.length > 0);
}

/** Returns the same views one after another. */
export function placesFor(who: WhoAmI): Place[] {
  return groupsFor(who).flatMap((group) => group.places);
}
