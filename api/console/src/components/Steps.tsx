import IconCircle from '@tabler/icons-react/icons/IconCircle';
import IconCircleCheck from '@tabler/icons-react/icons/IconCircleCheck';
import IconCircleDotFilled from '@tabler/icons-react/icons/IconCircleDotFilled';
import IconCircleX from '@tabler/icons-react/icons/IconCircleX';
import type { ReactNode } from 'react';

import { useT } from '../i18n';
import styles from './object.module.css';

/** A step of something that is done one after the other. */
export interface Step {
  text: ReactNode;
  state: 'done' | 'now' | 'next' | 'failed';
  /** Set when the text is the server's, in English. */
  lang?: 'en';
}

const ICONS = { done: IconCircleCheck, now: IconCircleDotFilled, next: IconCircle, failed: IconCircleX };
const KEYS = { done: 'steps.done', now: 'steps.now', next: 'steps.next', failed: 'steps.failed' } as const;

/** Steps in their order: what is done, what is under way, what comes. */
export function Steps({ steps }: { steps: Step[] }): ReactNode {
  const t = useT();
  return (
    <ol className={styles.steps}>
      {steps.map(({ text, state, lang }, at) => {
        const Icon = ICONS[state];
        return (
          <li key={at} data-state={state} aria-current={state === 'now' ? 'step' : undefined}>
            <Icon size={16} aria-hidden />
            <span>
              <span lang={lang}>{text}</span>
              <span className="visually-hidden"> ({t(KEYS[state])})</span>
            </span>
          </li>
        );
      })}
    </ol>
  );
}
