/** Choice for files that exist already. */
export type Answer = 'replace' | 'skip' | 'cancel';

/** A question about files that are there already. */
export interface Question {
  paths: string[];
  answer: (answer: Answer) => void;
}

/** Questions of uploads, asked one after the other. */
export class Questions {
  private readonly waiting: Question[] = [];
  private readonly listeners = new Set<() => void>();

  /** The question that is asked now. */
  readonly first = (): Question | undefined => this.waiting[0];

  /** Calls `listener` when another question is asked. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Asks once the questions before it are answered. */
  ask(paths: string[]): Promise<Answer> {
    return new Promise((resolve) => {
      const question: Question = {
        paths,
        answer: (given) => {
          const at = this.waiting.indexOf(question);
          if (at >= 0) this.waiting.splice(at, 1);
          this.notify();
          resolve(given);
        },
      };
      this.waiting.push(question);
      this.notify();
    });
  }

  private notify(): void {
    for (const listener of this.listeners) listener();
  }
}
