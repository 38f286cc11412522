import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { Plugin } from "vite";

const COMPRESSED = /\.(js|css|svg|txt|html|json)$/;
const LEAST_BYTES = 1_000; // Smaller files gain nothing.

/** Writes `.gz` and `.br` beside every file that gets smaller by it. */
export function compress(): Plugin {
  let folder = "";
  return {
    name: "windlass-compress",
    apply: "build",
    configResolved(config) {
      folder = join(config.root, config.build.outDir);
      if (config.build.outDir.startsWith("/")) folder = config.build.outDir;
    },
    closeBundle() {
      for (const path of filesBelow(folder)) {
        if (!COMPRESSED.test(path)) continue;
        const content = readFileSync(path);
        if (content.length < LEAST_BYTES) continue;
        const options = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
        writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
        writeFileSync(`${path}.br`, brotliCompressSync(content, options));
      }
    },
  };
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesBelow(path) : [path];
  });
}
