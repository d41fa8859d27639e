import { useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { post } from '../../api/client';
import { keys } from '../../api/keys';
import type { Rollout } from '../../api/queries/rollouts';
import { ActionPreview } from '../../components/ActionPreview';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';
import { goalOf } from './phases';
import { countReturning, readReturning, type Returning } from './returning';
import type { AskedChange } from './RolloutButtons';
import styles from './rollouts.module.css';

/** Users of an image that are named at most. */
const NAMED = 100;

interface Props {
  rollout: Rollout;
  asked: AskedChange | undefined;
  onClose: () => void;
}

/** Dialogs that say who returns to which image, or what stays, before a rollout is rolled back or cancelled. */
export function RolloutDialogs({ rollout, asked, onClose }: Props): ReactNode {
  const t = useT();
  const toasts = useToasts();
  const client = useQueryClient();
  const { id, progress } = rollout;
  const goal = goalOf(rollout);
  if (asked === undefined) return null;
  const change = async (verb: AskedChange): Promise<void> => {
    await post(`/api/admin/images/rollouts/${verb}`, { id });
    toasts.done(t(verb === 'rollback' ? 'rollout.rollback.done' : 'rollout.cancel.done'));
    await client.invalidateQueries({ queryKey: keys.object('rollout', id) });
  };
  if (asked === 'cancel')
    return (
      <ActionPreview
        opened
        onClose={onClose}
        title={t('rollout.cancel.title')}
        previewKey={['rollout-cancel', id]}
        preview={() => Promise.resolve(true)}
        verb={() => t('rollout.cancel')}
        act={() => change('cancel')}
      >
        {() => <p>{t('rollout.cancel.effect', { done: progress.done, goal })}</p>}
      </ActionPreview>
    );
  return (
    <ActionPreview<Returning[]>
      opened
      onClose={onClose}
      title={t('rollout.rollback.title')}
      previewKey={['rollout-rollback', id]}
      preview={(signal) => readReturning(id, signal)}
      verb={(groups) => t('rollout.rollback.verb', { count: countReturning(groups) })}
      act={() => change('rollback')}
    >
      {(groups) => (
        <>
          <p>{t('rollout.rollback.effect', { count: countReturning(groups) })}</p>
          {groups.map(({ image, users }) => (
            <div key={image}>
              <div>{t('rollout.rollback.to', { count: users.length, image })}</div>
              <div className={styles.names}>
                {users.slice(0, NAMED).join(', ')}
                {users.length > NAMED && ` ${t('bulk.more', { count: users.length - NAMED })}`}
              </div>
            </div>
          ))}
        </>
      )}
    </ActionPreview>
  );
}
