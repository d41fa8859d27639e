import { Link } from '@tanstack/react-router';
import { Fragment, type ReactNode } from 'react';

import type { Problem } from '../../api/queries/summary';
import { Remedy } from '../../components/Remedy';
import { TonePill } from '../../components/StatusPill';
import { Time } from '../../components/Time';
import { Rich, useT } from '../../i18n';
import { useReasons } from '../../i18n/reasons';
import { shownState } from '../../modules/state';
import { visibleText } from '../../modules/visible-text';
import styles from './dashboard.module.css';
import { ProblemButton } from './ProblemButton';
import { isOfUsers, ProblemObject } from './ProblemObject';

/** Objects that are not ready for the same reason: which, why, what helps, and the button that does it. */
export function ProblemRow({ problem }: { problem: Problem }): ReactNode {
  const t = useT();
  const explain = useReasons();
  const { kind, reason, count, objects, since, message } = problem;
  const { title, remedy } = explain(reason);
  const { tone } = shownState({ status: 'False', reason });
  const more = t('dashboard.more', { count: count - objects.length });
  return (
    <li className={styles.problem}>
      <div className={styles.what}>
        <TonePill tone={tone}>{title}</TonePill>{' '}
        <strong>
          {objects.map((name, at) => (
            <Fragment key={name}>
              {at > 0 && ', '}
              <ProblemObject kind={kind} name={name} />
            </Fragment>
          ))}
        </strong>{' '}
        {count > objects.length &&
          (isOfUsers(kind) ? (
            <Link to="/admin/users" search={{ reason }}>
              {more}
            </Link>
          ) : (
            more
          ))}
        {message !== '' && (
          <div lang="en" className={styles.message} title={visibleText(message)}>
            {visibleText(message)}
          </div>
        )}
        <div className={styles.remedy}>
          {remedy === '' ? <span lang="en">{visibleText(problem.remedy)}</span> : <Remedy text={remedy} />}
        </div>
        <small>
          <Rich k="sentence.reason" values={{ reason, time: <Time key="time" at={since} as="clock" /> }} />
        </small>
      </div>
      <ProblemButton problem={problem} />
    </li>
  );
}
