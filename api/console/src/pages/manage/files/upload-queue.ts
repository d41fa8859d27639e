import { Failure } from '../../../api/failure';
import { joinPath } from './paths';
import type { SendOptions } from './send-file';
import { MOST_BYTES, type PlannedFile } from './upload-plan';

/** A file of the queue. */
export interface Upload {
  id: number;
  /** Where it goes to. */
  path: string;
  planned: PlannedFile;
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

/** Sends files, a few at a time. Belongs to the browser's tab: it goes on while other pages are shown. */
export class UploadQueue {
  private uploads: readonly Upload[] = [];
  private next = 1;
  private readonly controllers = new Map<number, AbortController>();
  private readonly listeners = new Set<() => void>();

  constructor(
    private readonly send: Send,
    private readonly now: () => number = () => performance.now(),
  ) {}

  readonly list = (): readonly Upload[] => this.uploads;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Adds files; those that the server would not take fail at once. */
  add(files: { planned: PlannedFile; overwrite: boolean }[]): void {
    const added = files.map(({ planned, overwrite }): Upload => {
      const path = joinPath(planned.folder, planned.name);
      const upload = { id: this.next++, path, planned, overwrite, sent: 0 };
      if (planned.file.size <= MOST_BYTES) return { ...upload, state: 'waiting' };
      return { ...upload, state: 'failed', failure: new Failure(413, 'too_large', '') };
    });
    this.change([...this.uploads, ...added]);
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
    for (const upload of this.uploads.filter(isOpen)) this.cancel(upload.id);
  }

  /** Sends a file again; with `overwrite` in place of the one that is there. */
  retry(id: number, overwrite = false): void {
    this.update(id, (old) => ({
      state: 'waiting',
      sent: 0,
      failure: undefined,
      overwrite: overwrite || old.overwrite,
    }));
    this.start();
  }

  /** Forgets everything that has ended. */
  clear(): void {
    this.change(this.uploads.filter(isOpen));
  }

  private start(): void {
    for (const upload of this.uploads) {
      if (this.controllers.size >= AT_ONCE) return;
      if (upload.state === 'waiting' && !this.controllers.has(upload.id)) void this.run(upload);
    }
  }

  private async run({ id, planned, overwrite }: Upload): Promise<void> {
    const controller = new AbortController();
    this.controllers.set(id, controller);
    this.update(id, () => ({ state: 'sending' }));
    const begun = this.now();
    const onProgress = (sent: number): void => {
      const seconds = (this.now() - begun) / 1000;
      this.update(id, () => ({ sent, speed: seconds > 0.5 ? sent / seconds : undefined }));
    };
    let result: Partial<Upload> = { state: 'done', sent: planned.file.size };
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
    this.change(this.uploads.map((upload) => (upload.id === id ? { ...upload, ...parts(upload) } : upload)));
  }

  private change(uploads: readonly Upload[]): void {
    this.uploads = uploads;
    for (const listener of this.listeners) listener();
  }
}

/** Returns true while a file waits or is being sent. */
export function isOpen(upload: Upload): boolean {
  return upload.state === 'waiting' || upload.state === 'sending';
}
