import type { ReactNode } from 'react';

import { Copy } from '../../components/Copy';
import { Rich, useT } from '../../i18n';
import type { Archive } from './bulk';
import styles from './users.module.css';

/** Says which archive files become, how long it is kept, and how they come back. */
export function ArchiveNote({ archive }: { archive: Archive }): ReactNode {
  const t = useT();
  const name = <code key="name">{archive.directory}</code>;
  return (
    <div>
      <p>
        {archive.kept === null ? (
          <Rich k="archive.forever" values={{ name }} />
        ) : (
          <Rich k="archive.kept" values={{ name, time: <span lang="en">{archive.kept}</span> }} />
        )}
      </p>
      <p>{t('archive.restore')}</p>
      <div className={styles.command}>
        <code>{archive.restore}</code>
        <Copy text={archive.restore} />
      </div>
    </div>
  );
}
