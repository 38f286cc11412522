/**
 * Parameters of addresses as plain text: `/jobs?state=failed&state=aborted&queue=gpu`. A view's
 * route picks those it knows, with these functions, in `validateSearch`.
 */
export type RawSearch = Record<string, unknown>;

/** Returns a parameter that is there once. */
export function one(raw: RawSearch, name: string): string | undefined {
  const value = raw[name];
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return typeof first === "string" && first !== "" ? first : undefined;
}

/** Returns a parameter that may be repeated. */
export function many(raw: RawSearch, name: string): string[] | undefined {
  const value = raw[name];
  const list = (Array.isArray(value) ? value : [value]).filter(
    (item): item is string => typeof item === "string" && item !== "",
  );
  return list.length > 0 ? list : undefined;
}

/** Returns a whole number. */
export function whole(raw: RawSearch, name: string): number | undefined {
  const value = raw[name];
  if (typeof value === "number" && Number.isSafeInteger(value)) return value;
  const text = one(raw, name);
  if (text === undefined || !/^\d{1,15}$/.test(text)) return undefined;
  return Number(text);
}

/** Returns whole numbers. */
export function wholes(raw: RawSearch, name: string): number[] | undefined {
  const list = [raw[name]].flat().flatMap((value) => whole({ value }, "value") ?? []);
  return list.length > 0 ? list : undefined;
}

/** Returns whether a switch is on. */
export function flag(raw: RawSearch, name: string): true | undefined {
  return raw[name] === true || one(raw, name) === "true" ? true : undefined;
}

/** Returns one of a few words. */
export function choice<T extends string>(
  raw: RawSearch,
  name: string,
  allowed: readonly T[],
): T | undefined {
  const text = one(raw, name);
  return allowed.find((item) => item === text);
}

export function parseSearch(text: string): RawSearch {
  const found: Record<string, string | string[]> = {};
  for (const [name, value] of new URLSearchParams(text)) {
    const before = found[name];
    if (before === undefined) found[name] = value;
    else if (typeof before === "string") found[name] = [before, value];
    else before.push(value);
  }
  return found;
}

export function stringifySearch(search: RawSearch): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined && item !== null && item !== "" && item !== false) {
        params.append(name, String(item));
      }
    }
  }
  const text = params.toString();
  return text ? `?${text}` : "";
}
