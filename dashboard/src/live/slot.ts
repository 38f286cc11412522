const STREAMS = 3; // of the six connections that a browser opens to a server

/**
 * One of the few streams that all tabs of a browser may have at once. The browser takes it back
 * from a tab that is closed. Pages over plain HTTP of another machine have no such locks: there
 * every tab in sight has a stream.
 */
export class Slot {
  private release: (() => void) | undefined;
  private isWanted = false;
  private asking: Promise<boolean> | undefined;

  /** Returns whether this tab has one now. */
  take(): Promise<boolean> {
    this.isWanted = true;
    if (this.release) return Promise.resolve(true);
    this.asking ??= this.ask().finally(() => {
      this.asking = undefined;
    });
    return this.asking;
  }

  free(): void {
    this.isWanted = false;
    this.release?.();
    this.release = undefined;
  }

  private async ask(): Promise<boolean> {
    if (!navigator.locks) return true;
    for (let number = 0; number < STREAMS; number += 1) {
      const release = await held(`windlass stream ${number}`);
      if (!release) continue;
      if (this.isWanted) this.release = release;
      else release(); // It was given back before it came.
      return this.isWanted;
    }
    return false;
  }
}

/** Returns what gives a lock back; undefined if another tab has it. */
function held(name: string): Promise<(() => void) | undefined> {
  return new Promise((given) => {
    void navigator.locks.request(name, { ifAvailable: true }, (lock) => {
      if (!lock) {
        given(undefined);
        return undefined;
      }
      return new Promise<void>((done) => given(done));
    });
  });
}
