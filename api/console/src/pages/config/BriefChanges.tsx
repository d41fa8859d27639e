import type { ReactNode } from 'react';

import type { Revision } from '../../api/queries/config';
import { useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import { revisionValues } from './changed-values';
import styles from './config.module.css';
import type { ShownSetting } from './filter-settings';
import { isSecretText } from './read-entry';
import { lineOf } from './value-line';

/** Changes that are shown of a save. */
const MOST = 3;

/** The first changes of a save, a line each; documents and secrets by their keys alone. */
export function BriefChanges({
  revision,
  settings,
}: {
  revision: Revision;
  settings: ShownSetting[];
}): ReactNode {
  const t = useT();
  const changes = revisionValues(revision, settings);
  const more = changes.length - MOST;
  const said = (value: unknown): string =>
    value === null
      ? t('config.value.default')
      : (lineOf(value, t) ?? t(value === '' ? 'config.value.empty' : 'config.value.long'));
  return (
    <ul className={styles.brief}>
      {changes.slice(0, MOST).map(({ key, setting, before, after }) => (
        <li key={key}>
          <code>{visibleText(key)}</code>
          {!(setting && (isSecretText(setting) || setting.type === 'object')) && (
            <>
              {' '}
              {said(before)} <span aria-hidden>→</span>
              <span className="visually-hidden">{t('config.becomes')}</span> {said(after)}
            </>
          )}
        </li>
      ))}
      {more > 0 && <li className="dim">{t('bulk.more', { count: more })}</li>}
    </ul>
  );
}
