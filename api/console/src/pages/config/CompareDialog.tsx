import { Button } from '@mantine/core';
import type { ReactNode } from 'react';

import { DialogFrame } from '../../components/DialogFrame';
import dialog from '../../components/dialog.module.css';
import { useT } from '../../i18n';
import { actorText } from '../../modules/actor';
import { pendingValues } from './changed-values';
import { ChangedRow } from './ChangedRow';
import { useConfigForm } from './config-form';
import styles from './config.module.css';
import type { MeanwhileChange } from './meanwhile';

interface Props {
  changes: MeanwhileChange[];
  onKeep: () => void;
  onClose: () => void;
}

/** Values that were saved meanwhile beside unsaved ones of the same settings. */
export function CompareDialog({ changes, onKeep, onClose }: Props): ReactNode {
  const t = useT();
  const { settings, pending, drop } = useConfigForm();
  const mine = new Map(pendingValues(pending.changes).map((change) => [change.key, change]));
  return (
    <DialogFrame opened size={680} title={t('config.compare.title')} onClose={onClose}>
      <ul className={styles.compare}>
        {changes.map(({ key, actors, before, after }) => {
          const setting = settings.find((one) => one.key === key);
          const own = mine.get(key);
          return (
            <li key={key}>
              <small>
                {t('config.compare.by', { actors: actors.map((one) => actorText(one, t)).join(', ') })}
              </small>
              <ul className={styles.changes}>
                <ChangedRow change={{ key, setting, before, after }} />
              </ul>
              {own && (
                <>
                  <small>{t('config.compare.mine')}</small>
                  <ul className={styles.changes}>
                    <ChangedRow change={own} />
                  </ul>
                  <Button size="compact-sm" onClick={() => drop(key)}>
                    {t('config.compare.drop', { title: setting?.title ?? key })}
                  </Button>
                </>
              )}
            </li>
          );
        })}
      </ul>
      <div className={dialog.buttons}>
        <Button onClick={onClose}>{t('bulk.close')}</Button>
        <Button variant="filled" onClick={onKeep}>
          {t('config.compare.keep')}
        </Button>
      </div>
    </DialogFrame>
  );
}
