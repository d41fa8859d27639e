import type { ReactNode } from 'react';

import type { Rollout } from '../../api/queries/rollouts';
import { type MessageKey, useT, useTranslation } from '../../i18n';
import { duration } from '../../i18n/values';
import { readHumanTime } from '../../modules/human-time';
import { visibleText } from '../../modules/visible-text';
import { changesImage, lastWord } from './phases';
import styles from './rollouts.module.css';

/** Values that may be long have a line of their own. */
const WIDE: ReadonlySet<MessageKey> = new Set<MessageKey>(['rollout.to', 'rollout.from']);

/** Terms of a rollout: from what to what, how many at once, how long it waits. */
export function RolloutFacts({ rollout }: { rollout: Rollout }): ReactNode {
  const t = useT();
  const { language } = useTranslation();
  const { reference, source, image_id: id, max_unavailable: most } = rollout;
  const ofImage = changesImage(rollout);
  const time = (text: string): string => {
    const seconds = readHumanTime(text);
    return seconds === undefined ? text : duration(seconds, language);
  };
  const facts: [MessageKey, ReactNode][] = [
    ['rollout.to', ofImage ? <code>{visibleText(reference)}</code> : lastWord(reference)],
    ['rollout.from', source && (ofImage ? <code>{visibleText(source)}</code> : lastWord(source))],
    ['images.id', id && <code>{id.replace(/^sha256:/, '').slice(0, 12)}</code>],
    ['rollout.batch', t('rollout.batch.value', { count: most })],
    ['rollout.ready', time(rollout.min_ready)],
    ['rollout.timeout', time(rollout.health_timeout)],
    ['rollout.failure', t(rollout.pause_on_failure ? 'rollout.failure.pause' : 'rollout.failure.go')],
  ];
  return (
    <dl className={styles.facts}>
      {facts.map(([label, value]) =>
        value ? (
          <div key={label} className={styles.fact} data-wide={(ofImage && WIDE.has(label)) || undefined}>
            <dt>{t(label)}</dt>
            <dd>{value}</dd>
          </div>
        ) : null,
      )}
    </dl>
  );
}
