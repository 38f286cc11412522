import { useNavigate, useSearch } from "@tanstack/react-router";

/** Returns the moment that the page shows (`as_of=` in its address); undefined: now. */
export function useAsOf(): string | undefined {
  const search: { as_of?: string } = useSearch({ strict: false });
  return search.as_of;
}

/** Returns a function that moves the page to a moment, or back to now. */
export function useSetAsOf(): (moment: string | undefined) => void {
  const navigate = useNavigate();
  return (moment) => {
    void navigate({
      to: ".",
      search: (before: Record<string, unknown>) => ({ ...before, as_of: moment }),
      replace: true,
    } as never);
  };
}
