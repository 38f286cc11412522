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

export const GROUPS: readonly Group[] = [
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
      { to: "/fuzzing", label: "Fuzzing", icon: "fuzzing", key: "z" },
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

export const PLACES: readonly Place[] = GROUPS.flatMap((group) => group.places);
