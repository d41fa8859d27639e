import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';

import { revisionsAfterQuery } from '../../api/queries/config';
import { Time } from '../../components/Time';
import { Rich, useT } from '../../i18n';
import { actorText } from '../../modules/actor';
import { CompareDialog } from './CompareDialog';
import { useConfigForm } from './config-form';
import styles from './config.module.css';
import { meanwhileChanges } from './meanwhile';

/** Says that settings were saved while changes to them are unsaved, and offers to compare. */
export function MeanwhileNote(): ReactNode {
  const t = useT();
  const { draft, pending, generation, rebase } = useConfigForm();
  const [open, setOpen] = useState(false);
  const base = draft.generation ?? generation;
  const isBehind = pending.keys.length > 0 && base < generation;
  const { data } = useQuery({ ...revisionsAfterQuery(base, generation), enabled: isBehind });
  const [newest] = data ?? [];
  if (!isBehind && open) setOpen(false);
  if (!isBehind || data === undefined || newest === undefined) return null;
  const changes = meanwhileChanges(data, pending.keys);
  const both = changes.filter(({ isMine }) => isMine).length;
  const actors = [...new Set(data.map(({ actor }) => actorText(actor, t)))].join(', ');
  return (
    <div className={styles.meanwhile} role="status">
      <span className="grow">
        <strong>
          <Rich
            k="config.meanwhile"
            values={{ actors, time: <Time key="time" at={newest.at} />, count: changes.length }}
          />
        </strong>{' '}
        {both > 0 ? t('config.meanwhile.both', { count: both }) : t('config.meanwhile.none')}
      </span>
      <span className="row">
        <Button size="compact-sm" onClick={() => setOpen(true)}>
          {t('config.meanwhile.compare')}
        </Button>
        {both === 0 && (
          <Button size="compact-sm" variant="subtle" onClick={() => rebase(generation)}>
            {t('config.meanwhile.dismiss')}
          </Button>
        )}
      </span>
      {open && (
        <CompareDialog
          changes={changes}
          onKeep={() => {
            rebase(generation);
            setOpen(false);
          }}
          onClose={() => setOpen(false)}
        />
      )}
    </div>
  );
}
