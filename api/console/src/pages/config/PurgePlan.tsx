import { Checkbox } from '@mantine/core';
import type { ReactNode } from 'react';

import type { Purge } from '../../api/queries/config';
import states from '../../components/states.module.css';
import { useT, useTranslation } from '../../i18n';
import { longTime, readHumanTime } from '../../modules/human-time';
import styles from './config.module.css';
import { NameLinks } from './NameLinks';

interface Props {
  purge: Purge;
  /** Time for which archives are kept, as it is configured. */
  retention: unknown;
  /** The mode is changed although the test has failed. */
  forced: boolean;
  onForce: (forced: boolean) => void;
}

/** Effect of a change of the mode: what it removes, what stays, and why it cannot be made. */
export function PurgePlan({ purge, retention, forced, onForce }: Props): ReactNode {
  const t = useT();
  const { language } = useTranslation();
  const { from, to, users, containers, groups, names, problem } = purge;
  const seconds = typeof retention === 'string' ? readHumanTime(retention) : undefined;
  const nothing = users + containers + groups === 0;
  return (
    <section className={states.sentence} data-tone={problem || !nothing ? 'bad' : 'warn'}>
      <strong>{t(nothing ? 'config.purge.nothing' : 'config.purge', { from, to })}</strong>
      {!nothing && (
        <ul className={styles.plain}>
          <li>
            {t('config.purge.users', { count: users })}
            {users > 0 && ': '}
            <NameLinks names={names} total={users} />
          </li>
          <li>{t('config.purge.containers', { count: containers })}</li>
          <li>{t('config.purge.groups', { count: groups })}</li>
        </ul>
      )}
      {!nothing && (
        <div>
          {seconds
            ? t('config.purge.kept', { time: longTime(seconds, language) })
            : t('config.purge.kept.forever')}{' '}
          {t('config.purge.stays')}
        </div>
      )}
      {problem && (
        <>
          <div>
            {t('config.purge.problem')} <span lang="en">{problem}</span>
          </div>
          <Checkbox
            label={t('config.purge.force')}
            checked={forced}
            onChange={(event) => onForce(event.currentTarget.checked)}
          />
        </>
      )}
    </section>
  );
}
