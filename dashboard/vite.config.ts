import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { compress } from "./build/compress.ts";
import { notices } from "./build/notices.ts";

// The running server that the development server passes requests on to.
const server = process.env.WINDLASS_SERVER ?? "http://127.0.0.1:7420";

export default defineConfig({
  base: "./", // The server knows its own prefix and puts it into index.html.
  plugins: [react(), notices(), compress()],
  build: {
    outDir: process.env.WINDLASS_STATIC ?? "../src/windlass/dashboard/static",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0, // data: addresses are forbidden by our policy
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 400,
    rolldownOptions: { checks: { pluginTimings: false } }, // compressing takes most of the build
  },
  server: {
    proxy: {
      "/api": { target: server, changeOrigin: true, rewriteWsOrigin: true },
      "/auth": { target: server, changeOrigin: true },
    },
  },
});
