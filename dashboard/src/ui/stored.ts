import { useState } from "react";

/** Like `useState`, kept in this browser under `name`. */
export function useStored<T>(name: string, initial: T): [T, (value: T) => void] {
  const [value, setValue] = useState<T>(() => readStored(name) ?? initial);
  function change(next: T): void {
    setValue(next);
    try {
      localStorage.setItem(`windlass.${name}`, JSON.stringify(next));
    } catch {
      // Storage is full or turned off: it counts until the page is closed.
    }
  }
  return [value, change];
}

function readStored<T>(name: string): T | undefined {
  try {
    const text = localStorage.getItem(`windlass.${name}`);
    return text === null ? undefined : (JSON.parse(text) as T);
  } catch {
    return undefined;
  }
}
