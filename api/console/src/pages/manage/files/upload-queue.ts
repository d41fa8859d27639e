import { Failure } from '../../../api/failure';
import { joinPath } from './paths';
import type { SendOptions } from './send-file';
import { MOST_BYTES, type PlannedFile } from './upload-plan';

/** A file of the queue. */
export interface Upload {
  id: number;
  /** Where it goes to. */
  path: string;
  size: number;
  /** Absent once the file has arrived, so that it can be let go. */
  planned?: PlannedFile;
  overwrite: boolean;
  sent: number;
  /** Bytes a second, once it is known. */
  speed?: number;
  state: 'waiting' | 'sending' | 'done' | 'failed' | 'cancelled';
  failure?: Failure;
}

type Send = (planned: PlannedFile, options: SendOptions) => Promise<void>;

/** Files that are sent at the same time. */
const AT_ONCE = 3;
/** Milliseconds between two messages to listeners. */
const EVERY = 100;

/** Sends files, a few at a time. Belongs to the browser's tab: it goes on while other pages are shown. */
export class UploadQueue {
  private readonly uploads = new Map<number, Upload>();
  private shown: readonly Upload[] | undefined = [];
  private waiting: number[] = [];
  private next = 1;
  private notified = -Infinity;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly controllers = new Map<number, AbortController>();
  private readonly listeners = new Set<() => void>();

  constructor(
    private readonly send: Send,
    private readonly now: () => number = () => performance.now(),
  ) {}

  readonly list = (): readonly Upload[] => (this.shown ??= [...this.uploads.values()]);

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Adds files; those that the server would not take fail at once. */
  add(files: { planned: PlannedFile; overwrite: boolean }[]): void {
    for (const { planned, overwrite } of files) {
      const id = this.next++;
      const { size } = planned.file;
      const upload = { id, path: joinPath(planned.folder, planned.name), size, planned, overwrite, sent: 0 };
      if (size <= MOST_BYTES) {
        this.uploads.set(id, { ...upload, state: 'waiting' });
        this.waiting.push(id);
      } else {
        this.uploads.set(id, { ...upload, state: 'failed', failure: new Failure(413, 'too_large', '') });
      }
    }
    this.changed();
    this.start();
  }

  /** Cancels a file, whether or not it is being sent. */
  cancel(id: number): void {
    this.controllers.get(id)?.abort();
    this.update(id, (upload) => (isOpen(upload) ? { state: 'cancelled', speed: undefined } : {}));
    this.start();
  }

  /** Cancels everything that is not done. */
  cancelAll(): void {
    this.waiting = [];
    for (const upload of this.list().filter(isOpen)) this.cancel(upload.id);
  }

  /** Sends a file again; with `overwrite` in place of the one that is there. */
  retry(id: number, overwrite = false): void {
    const old = this.uploads.get(id);
    if (old === undefined || isOpen(old) || old.state === 'done') return;
    this.update(id, () => ({
      state: 'waiting',
      sent: 0,
      failure: undefined,
      overwrite: overwrite || old.overwrite,
    }));
    this.waiting.push(id);
    this.start();
  }

  /** Forgets everything that has ended. */
  clear(): void {
    for (const upload of this.list()) if (!isOpen(upload)) this.uploads.delete(upload.id);
    this.changed();
  }

  private start(): void {
    const held: number[] = [];
    while (this.controllers.size < AT_ONCE) {
      const id = this.waiting.shift();
      if (id === undefined) break;
      const upload = this.uploads.get(id);
      if (upload?.state !== 'waiting') continue;
      // The attempt that was cancelled has not ended yet.
      if (this.controllers.has(id)) held.push(id);
      else if (upload.planned) void this.run(id, upload.planned, upload.overwrite);
    }
    this.waiting.unshift(...held);
  }

  private async run(id: number, planned: PlannedFile, overwrite: boolean): Promise<void> {
    const controller = new AbortController();
    this.controllers.set(id, controller);
    this.update(id, () => ({ state: 'sending' }));
    const begun = this.now();
    const onProgress = (sent: number): void => {
      const seconds = (this.now() - begun) / 1000;
      this.update(id, () => ({ sent, speed: seconds > 0.5 ? sent / seconds : undefined }));
    };
    let result: Partial<Upload> = { state: 'done', sent: planned.file.size, planned: undefined };
    try {
      await this.send(planned, { overwrite, signal: controller.signal, onProgress });
    } catch (thrown) {
      result = { state: 'failed', failure: Failure.from(thrown) };
    }
    this.controllers.delete(id);
    this.update(id, (upload) => (upload.state === 'sending' ? { ...result, speed: undefined } : {}));
    this.start();
  }

  private update(id: number, parts: (upload: Upload) => Partial<Upload>): void {
    const upload = this.uploads.get(id);
    if (upload === undefined) return;
    this.uploads.set(id, { ...upload, ...parts(upload) });
    this.changed();
  }

  /** Tells listeners at most every 100 ms, the last change included. */
  private changed(): void {
    this.shown = undefined;
    if (this.timer !== undefined) return;
    const wait = this.notified + EVERY - this.now();
    if (wait <= 0) this.notify();
    else this.timer = setTimeout(() => this.notify(), wait);
  }

  private notify(): void {
    this.timer = undefined;
    this.notified = this.now();
    for (const listener of this.listeners) listener();
  }
}

/** Returns true while a file waits or is being sent. */
export function isOpen(upload: Upload): boolean {
  return upload.state === 'waiting' || upload.state === 'sending';
}
