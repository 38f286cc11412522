import "@fontsource-variable/inter/wght.css";
import "@fontsource-variable/jetbrains-mono/wght.css";
import "./ui/theme.css";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { makeQueryClient } from "./api/query";
import { WHO_KEY } from "./api/who";
import { makeRouter } from "./routes";
import { goToSignIn } from "./shell/session";
import { Notices } from "./ui/Notices";

const queries = makeQueryClient(() =>
  goToSignIn(router, queries.getQueryData(WHO_KEY) !== undefined),
);
const router = makeRouter(queries);

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
        <Notices />
      </QueryClientProvider>
    </StrictMode>,
  );
}
