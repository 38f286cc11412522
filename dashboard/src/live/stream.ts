import { API_BASE } from "../base";
import { whenVisibilityChanges } from "./visible";

/** What changed since the last message, among what the page shows. */
export interface Change {
  /** Kinds of events: job, worker, workflow, log, pool, queue, schedule, template, … */
  kinds: string[];
  jobs: number[];
  workflows: number[];
  workers: number[];
  /** More has changed than is listed: ask for everything again. */
  more: boolean;
}

export type LiveState = "off" | "connecting" | "on" | "lost";

type Listener = (change: Change) => void;

const SETTLE_MS = 150; // Views that open together share one new stream.
const RETRY_MS = 3_000;

/**
 * The one stream of this page. It follows what the mounted views say that they show: kinds
 * ("jobs", "workers", …) or single things ("job:7", "workflow:3").
 *
 * A page in the background has none. Browsers open six connections to a server for all their tabs
 * together, so streams that nobody looks at would keep the next tab from loading.
 */
class LiveStream {
  private readonly listeners = new Map<Listener, readonly string[]>();
  private readonly watchers = new Set<() => void>();
  private source: EventSource | undefined;
  private topics = "";
  private lastId = "";
  private timer: ReturnType<typeof setTimeout> | undefined;
  state: LiveState = "off";

  constructor() {
    whenVisibilityChanges(() => this.settle(0));
  }

  listen(topics: readonly string[], listener: Listener): () => void {
    this.listeners.set(listener, topics);
    this.settle(SETTLE_MS);
    return () => {
      this.listeners.delete(listener);
      this.settle(SETTLE_MS);
    };
  }

  watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  /** Ends the stream, because nobody is signed in any more. */
  stop(): void {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = undefined;
    this.topics = "";
    this.lastId = "";
    this.become("off");
  }

  private settle(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.reopen(), ms);
  }

  private reopen(): void {
    const shown = document.hidden ? [] : [...this.listeners.values()].flat();
    const wanted = [...new Set(shown)].sort();
    const topics = wanted.map((topic) => `show=${encodeURIComponent(topic)}`).join("&");
    if (topics === this.topics && this.source) return;
    this.source?.close();
    this.source = undefined;
    this.topics = topics;
    if (!topics) {
      this.become("off");
      return;
    }
    const after = this.lastId ? `&after=${this.lastId}` : "";
    const source = new EventSource(`${API_BASE}/api/v1/live?${topics}${after}`);
    this.source = source;
    this.become("connecting");
    source.onopen = () => this.become("on");
    source.addEventListener("changed", (event) => this.receive(event as MessageEvent<string>));
    source.addEventListener("at", (event) => {
      this.lastId = (event as MessageEvent<string>).lastEventId;
    });
    source.onerror = () => {
      source.close();
      if (this.source !== source) return;
      this.source = undefined;
      this.become("lost");
      this.settle(RETRY_MS);
    };
  }

  private receive(event: MessageEvent<string>): void {
    this.lastId = event.lastEventId;
    const change = JSON.parse(event.data) as Change;
    for (const listener of this.listeners.keys()) listener(change);
  }

  private become(state: LiveState): void {
    if (state === this.state) return;
    this.state = state;
    for (const watcher of this.watchers) watcher();
  }
}

export const live = new LiveStream();
