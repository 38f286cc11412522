import type { PluginPage } from "../api/plugins";
import { may, type WhoAmI } from "../api/who";
import type { IconName } from "../ui/Icon";

/** A view that the navigation leads to. */
export interface Place {
  to: string;
  label: string;
  icon: IconName;
  /** `g` and then this key goes there. */
  key?: string;
  /** Only callers who may do this are shown it. */
  needs?: string;
  /** Only servers with a plug-in that has this page show it. */
  ofPlugin?: boolean;
  /** It is no view of this page, but a page of a plug-in beside it. */
  isBeside?: boolean;
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
      {
        to: "/fuzzing",
        label: "Fuzzing",
        icon: "fuzzing",
        key: "z",
        needs: "read-plugins",
        ofPlugin: true,
      },
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

/** Returns the views and the pages of plug-ins that a caller is offered, in groups not empty. */
export function groupsFor(who: WhoAmI, pages: readonly PluginPage[]): Group[] {
  const there = new Set(pages.map((page) => page.path));
  const beside = pages.filter((page) => page.path.startsWith("/plugins/"));
  const all = [...GROUPS, { label: "Plug-ins", places: beside.map(placeOf) }];
  const offered = all.map((group) => ({
    ...group,
    places: group.places.filter(
      (place) =>
        (!place.needs || may(who, place.needs)) && (!place.ofPlugin || there.has(place.to)),
    ),
  }));
  return offered.filter((group) => group.places.length > 0);
}

function placeOf({ path, label, needs }: PluginPage): Place {
  return { to: path, label, icon: "plugin", needs, isBeside: true };
}
