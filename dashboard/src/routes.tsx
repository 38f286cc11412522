import type { QueryClient } from "@tanstack/react-query";
import { createRouter } from "@tanstack/react-router";
import { BASE } from "./base";
import { parseSearch, stringifySearch } from "./search";
import { rootRoute } from "./shell/rootRoute";
import { shellRoute } from "./shell/shellRoute";
import { signInRoute } from "./shell/signInRoute";
import { RouteFailed, RoutePending } from "./ui/RouteStates";
import { auditRoute } from "./views/audit/route";
import { fuzzingRoute } from "./views/fuzzing/route";
import { jobRoute } from "./views/job/route";
import { jobsRoute } from "./views/jobs/route";
import { namespacesRoute } from "./views/namespaces/route";
import { overviewRoute } from "./views/overview/route";
import { poolRoute } from "./views/pool/route";
import { poolsRoute } from "./views/pools/route";
import { questionsRoute } from "./views/questions/route";
import { queuesRoute } from "./views/queues/route";
import { schedulesRoute } from "./views/schedules/route";
import { submitRoute } from "./views/submit/route";
import { templatesRoute } from "./views/templates/route";
import { tokensRoute } from "./views/tokens/route";
import { workerRoute } from "./views/worker/route";
import { workersRoute } from "./views/workers/route";
import { workflowRoute } from "./views/workflow/route";
import { workflowsRoute } from "./views/workflows/route";

const routeTree = rootRoute.addChildren([
  signInRoute,
  shellRoute.addChildren([
    overviewRoute,
    jobsRoute,
    jobRoute,
    submitRoute,
    workflowsRoute,
    workflowRoute,
    workersRoute,
    workerRoute,
    poolsRoute,
    poolRoute,
    queuesRoute,
    schedulesRoute,
    templatesRoute,
    namespacesRoute,
    tokensRoute,
    auditRoute,
    fuzzingRoute,
    questionsRoute,
  ]),
]);

export function makeRouter(queries: QueryClient) {
  return createRouter({
    routeTree,
    basepath: BASE,
    context: { queries },
    parseSearch,
    stringifySearch,
    defaultPreload: "intent",
    defaultPendingComponent: RoutePending,
    defaultErrorComponent: RouteFailed,
    scrollRestoration: true,
  });
}
