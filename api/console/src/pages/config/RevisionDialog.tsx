import { Button } from '@mantine/core';
import type { ReactNode } from 'react';

import type { Revision } from '../../api/queries/config';
import { Actor } from '../../components/Actor';
import { DialogFrame } from '../../components/DialogFrame';
import dialog from '../../components/dialog.module.css';
import { Time } from '../../components/Time';
import { Rich, useT } from '../../i18n';
import { revisionValues } from './changed-values';
import { ChangeList } from './ChangeList';
import { useConfigForm } from './config-form';

/** One save: all values before and after, and the way back to it. */
export function RevisionDialog({
  revision,
  onClose,
}: {
  revision: Revision;
  onClose: () => void;
}): ReactNode {
  const t = useT();
  const { settings, generation, rollBack } = useConfigForm();
  const { revision: number, actor, at } = revision;
  // A return to the newest would change nothing: what takes it back is the one before.
  const goal = number === generation ? number - 1 : number;
  return (
    <DialogFrame
      opened
      size={680}
      title={t('config.history.title', { revision: String(number) })}
      onClose={onClose}
    >
      <small>
        <Rich
          k="config.history.by"
          values={{
            actor: <Actor key="actor" name={actor} />,
            time: <Time key="time" at={at} as="exact" />,
          }}
        />
      </small>
      <ChangeList changes={revisionValues(revision, settings)} />
      <div className={dialog.buttons}>
        <Button onClick={onClose}>{t('bulk.close')}</Button>
        {goal > 0 && (
          <Button
            onClick={() => {
              onClose();
              rollBack(goal);
            }}
          >
            {t('config.rollback.button', { revision: String(goal) })}…
          </Button>
        )}
      </div>
    </DialogFrame>
  );
}
