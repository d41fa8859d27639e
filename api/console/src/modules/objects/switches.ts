import type { MessageKey } from '../../i18n';

/** Scope that is paused or resumed. */
export type SwitchScope =
  | { of: 'object'; kind: string; name: string }
  | { of: 'reconciler'; name: string; /** Its objects. */ count: number }
  | { of: 'all'; /** All objects. */ count: number };

/** Texts of the dialog that pauses or resumes. */
export interface SwitchTexts {
  title: MessageKey;
  /** Effect. */
  text: MessageKey;
  verb: MessageKey;
  done: MessageKey;
}

const PAUSE: Record<SwitchScope['of'], SwitchTexts> = {
  object: { title: 'pause.object.title', text: 'pause.object.text', verb: 'pause.verb', done: 'pause.done' },
  reconciler: {
    title: 'pause.reconciler.title',
    text: 'pause.reconciler.text',
    verb: 'pause.reconciler.verb',
    done: 'pause.reconciler.done',
  },
  all: { title: 'pause.all.title', text: 'pause.all.text', verb: 'pause.all.verb', done: 'pause.all.done' },
};

const RESUME: Record<SwitchScope['of'], SwitchTexts> = {
  object: {
    title: 'resume.object.title',
    text: 'resume.object.text',
    verb: 'resume.verb',
    done: 'resume.done',
  },
  reconciler: {
    title: 'resume.reconciler.title',
    text: 'resume.reconciler.text',
    verb: 'resume.reconciler.verb',
    done: 'resume.reconciler.done',
  },
  all: {
    title: 'resume.all.title',
    text: 'resume.all.text',
    verb: 'resume.all.verb',
    done: 'resume.all.done',
  },
};

/** Texts of a switch. */
export function switchTexts(scope: SwitchScope, pauses: boolean): SwitchTexts {
  return (pauses ? PAUSE : RESUME)[scope.of];
}

/** Values of its texts. */
export function switchValues(scope: SwitchScope): { name: string; count: number } {
  if (scope.of === 'object') return { name: `${scope.kind}/${scope.name}`, count: 1 };
  return { name: scope.of === 'reconciler' ? scope.name : '', count: scope.count };
}

/** Body of its request. */
export function switchBody(scope: SwitchScope): Record<string, unknown> {
  if (scope.of === 'object') return { kind: scope.kind, name: scope.name };
  return scope.of === 'reconciler' ? { reconciler: scope.name } : { all: true };
}
