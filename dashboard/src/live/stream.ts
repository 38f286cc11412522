import { API_BASE } from "../base";
import { Slot } from "./slot";
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

export type LiveState = "off" | "connecting" | "on" | "lost" | "slow";

type Listener = (change: Change) => void;

const SETTLE_MS = 150; // Views that open together share one new stream.
const RETRY_MS = 3_000;
const SLOW_MS = 5_000;
const EVERYTHING: Change = { kinds: [], jobs: [], workflows: [], workers: [], more: true };

/**
 * The one stream of this page. It follows what the mounted views say that they show: kinds
 * ("jobs", "workers", …) or single things ("job:7", "workflow:3").
 *
 * A browser opens six connections to a server, for all of its tabs together, and a stream keeps
 * one. So only what is in sight has a stream, and never so many that no tab could ask anything:
 * those beyond (`slow`) ask again every few seconds.
 */
class LiveStream {
  private readonly listeners = new Map<Listener, readonly string[]>();
  private readonly watchers = new Set<() => void>();
  private readonly slot = new Slot();
  private source: EventSource | undefined;
  private topics = "";
  private lastId = "";
  /** Since when nobody tells what changes, while no event is known to go on from. */
  private isBehind = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  state: LiveState = "off";

  constructor() {
    whenVisibilityChanges(() => this.settle(SETTLE_MS));
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

  /** Takes the number of an event before anything was read; nothing that follows it is missed. */
  goOnFrom(event: number): void {
    if (event) this.lastId ||= String(event);
    else this.isBehind ||= this.lastId === "";
  }

  /** Ends the stream, because nobody is signed in any more. */
  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.lastId = "";
    this.isBehind = false;
    this.rest();
  }

  private settle(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.reopen(), ms);
  }

  private rest(): void {
    this.source?.close();
    this.source = undefined;
    this.topics = "";
    this.slot.free();
    this.become("off");
  }

  /** What the mounted views show now, as the stream's address says it. */
  private wanted(): string {
    const topics = [...new Set([...this.listeners.values()].flat())].sort();
    return topics.map((topic) => `show=${encodeURIComponent(topic)}`).join("&");
  }

  private async reopen(): Promise<void> {
    const topics = this.wanted();
    if (!topics || document.hidden) {
      this.isBehind ||= document.hidden && this.lastId === "";
      this.rest();
      return;
    }
    if (topics === this.topics && this.source) return;
    this.source?.close();
    this.source = undefined;
    const timer = this.timer;
    const isGiven = await this.slot.take();
    if (timer !== this.timer) return; // Others have asked in the meantime: they go on.
    if (!isGiven) {
      this.become("slow");
      this.isBehind = true;
      this.tell(EVERYTHING);
      this.settle(SLOW_MS);
      return;
    }
    this.open(topics);
  }

  private open(topics: string): void {
    this.topics = topics;
    const after = this.lastId ? `&after=${this.lastId}` : "";
    const source = new EventSource(`${API_BASE}/api/v1/live?${topics}${after}`);
    this.source = source;
    this.become("connecting");
    source.onopen = () => {
      this.become("on");
      if (this.isBehind) this.tell(EVERYTHING);
      this.isBehind = false;
    };
    source.addEventListener("changed", (event) => this.receive(event as MessageEvent<string>));
    source.addEventListener("at", (event) => {
      // What came after `lastId` is still to be told: a stream that ends before that must not count.
      if (this.lastId === "") this.knows(event as MessageEvent<string>);
    });
    source.onerror = () => {
      source.close();
      if (this.source !== source) return;
      this.source = undefined;
      this.become("lost");
      this.settle(RETRY_MS);
    };
  }

  /** Notes up to where nothing was missed, unless a view has mounted that this stream ignores. */
  private knows(event: MessageEvent<string>): void {
    if (this.topics === this.wanted()) this.lastId = event.lastEventId;
    else this.isBehind ||= this.lastId === "";
  }

  private receive(event: MessageEvent<string>): void {
    this.knows(event);
    this.tell(JSON.parse(event.data) as Change);
  }

  private tell(change: Change): void {
    for (const listener of this.listeners.keys()) listener(change);
  }

  private become(state: LiveState): void {
    if (state === this.state) return;
    this.state = state;
    for (const watcher of this.watchers) watcher();
  }
}

export const live = new LiveStream();
