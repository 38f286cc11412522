import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Plugin } from "vite";

interface Package {
  name: string;
  version: string;
  license: string;
  text: string;
}

/** Writes `licences.txt`: the notices of every package that became part of the page. */
export function notices(): Plugin {
  return {
    name: "windlass-notices",
    apply: "build",
    generateBundle(_, bundle) {
      const found = new Map<string, Package>();
      for (const part of Object.values(bundle)) {
        if (part.type !== "chunk") continue;
        for (const id of part.moduleIds) {
          const one = packageOf(id);
          if (one) found.set(`${one.name}@${one.version}`, one);
        }
      }
      const sorted = [...found.values()].sort((a, b) => a.name.localeCompare(b.name));
      const source = sorted
        .map((one) => `${one.name} ${one.version} (${one.license})\n\n${one.text.trim()}\n`)
        .join("\n----------------------------------------\n\n");
      this.emitFile({ type: "asset", fileName: "licences.txt", source });
    },
  };
}

function packageOf(id: string): Package | undefined {
  if (!id.includes("/node_modules/")) return undefined;
  let folder = dirname(id.replace(/^\0/, "").replace(/\?.*$/, ""));
  while (folder.includes("/node_modules/")) {
    const path = join(folder, "package.json");
    if (existsSync(path)) {
      const described = JSON.parse(readFileSync(path, "utf8")) as Partial<Package>;
      if (described.name && described.version) {
        return {
          name: described.name,
          version: described.version,
          license: described.license ?? "unknown",
          text: textOf(folder),
        };
      }
    }
    folder = dirname(folder);
  }
  return undefined;
}

function textOf(folder: string): string {
  const name = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
  return name ? readFileSync(join(folder, name), "utf8") : "";
}
