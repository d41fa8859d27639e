import { Failure } from '../api/failure';
import { readDraft, storeDraft } from '../modules/drafts';
import type { SendOptions } from '../pages/manage/files/send-file';
import type { PlannedFile } from '../pages/manage/files/upload-plan';
import { type Attachment, MOST_ATTACHMENTS, MOST_PICTURE_BYTES } from './protocol';
import { numberedName, plainName, UPLOADS } from './upload-names';

/** A file that is to go with the next message. */
export interface DraftFile {
  key: number;
  name: string;
  size: number;
  state: 'sending' | 'done' | 'failed';
  sent: number;
  /** Path in the workspace, once it is there. */
  path?: string;
  failure?: Failure;
  /** The model can be shown it as a picture. */
  canBePicture: boolean;
  picture: boolean;
}

/** The requests of an upload. */
export interface Uploader {
  /** Makes the folder where there is none, and returns the names in it that may be in the way. */
  prepare: (name: string) => Promise<ReadonlySet<string>>;
  send: (file: PlannedFile, options: SendOptions) => Promise<void>;
}

/** Largest file that the service takes, in bytes. */
const MOST_BYTES = 33_554_432;
/** Names that are tried before an upload fails. */
const MOST_NAMES = 500;
const PICTURES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/bmp']);

/** Files of a message that is being written: uploaded at once, one after the other. */
export class DraftFiles {
  private files: readonly DraftFile[];
  private next = 1;
  private last: Promise<void> = Promise.resolve();
  private readonly sources = new Map<number, File>();
  private readonly controllers = new Map<number, AbortController>();
  private readonly listeners = new Set<() => void>();

  /** `name`: of the draft that keeps the uploaded files over a reload. */
  constructor(
    private readonly name: string,
    private readonly uploader: Uploader,
  ) {
    const stored = readDraft(name);
    this.files = Array.isArray(stored) ? (stored as DraftFile[]) : [];
    this.next = Math.max(0, ...this.files.map(({ key }) => key)) + 1;
  }

  readonly list = (): readonly DraftFile[] => this.files;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Adds files and uploads them. Returns false when a message does not take them all. */
  add(files: readonly File[]): boolean {
    const taken = files.slice(0, Math.max(0, MOST_ATTACHMENTS - this.files.length));
    for (const file of taken) {
      const key = this.next++;
      const canBePicture = PICTURES.has(file.type) && file.size <= MOST_PICTURE_BYTES;
      const { size } = file;
      const name = plainName(file.name);
      this.sources.set(key, file);
      this.change([
        ...this.files,
        { key, name, size, state: 'sending', sent: 0, canBePicture, picture: canBePicture },
      ]);
      this.queue(key);
    }
    return taken.length === files.length;
  }

  /** Cancels or leaves out a file; one that was uploaded stays in the workspace. */
  remove(key: number): void {
    this.controllers.get(key)?.abort();
    this.sources.delete(key);
    this.change(this.files.filter((file) => file.key !== key));
  }

  /** Uploads a file again. */
  retry(key: number): void {
    this.update(key, { state: 'sending', sent: 0, failure: undefined });
    this.queue(key);
  }

  setPicture(key: number, picture: boolean): void {
    this.update(key, { picture });
  }

  /** Returns the uploaded files and forgets all of them. */
  take(): Attachment[] {
    const taken = this.files.flatMap(({ path, name, size, picture }) =>
      path === undefined ? [] : [{ path, name, size, picture }],
    );
    this.sources.clear();
    this.change([]);
    return taken;
  }

  /** Puts the files of a message back that was not sent. */
  putBack(attachments: readonly Attachment[]): void {
    const files = attachments.map(({ path, name, size, picture }): DraftFile => {
      const key = this.next++;
      return {
        key,
        name,
        size: size ?? 0,
        state: 'done',
        sent: size ?? 0,
        path,
        canBePicture: picture,
        picture,
      };
    });
    this.change([...this.files, ...files].slice(0, MOST_ATTACHMENTS));
  }

  private queue(key: number): void {
    this.last = this.last.then(() => this.run(key));
  }

  private async run(key: number): Promise<void> {
    const file = this.sources.get(key);
    if (file === undefined) return;
    const controller = new AbortController();
    this.controllers.set(key, controller);
    try {
      if (file.size > MOST_BYTES) throw new Failure(413, 'too_large', '');
      const path = await this.send(file, {
        overwrite: false,
        signal: controller.signal,
        onProgress: (sent) => this.update(key, { sent }),
      });
      this.sources.delete(key);
      this.update(key, { state: 'done', sent: file.size, path });
    } catch (thrown) {
      this.update(key, { state: 'failed', failure: Failure.from(thrown) });
    }
    this.controllers.delete(key);
  }

  /** Uploads under the first name that is free. */
  private async send(file: File, options: SendOptions): Promise<string> {
    const wanted = plainName(file.name);
    const taken = await this.uploader.prepare(wanted);
    for (let at = 1; ; at += 1) {
      const name = numberedName(wanted, at);
      if (taken.has(name) && at < MOST_NAMES) continue;
      try {
        await this.uploader.send({ folder: UPLOADS, name, file }, options);
        return `${UPLOADS}/${name}`;
      } catch (thrown) {
        const isTaken = thrown instanceof Failure && thrown.code === 'already_exists';
        if (!isTaken || at >= MOST_NAMES) throw thrown;
      }
    }
  }

  private update(key: number, parts: Partial<DraftFile>): void {
    this.change(this.files.map((file) => (file.key === key ? { ...file, ...parts } : file)));
  }

  private change(files: readonly DraftFile[]): void {
    this.files = files;
    const done = files.filter(({ state }) => state === 'done');
    storeDraft(this.name, done.length === 0 ? undefined : done);
    for (const listener of this.listeners) listener();
  }
}
