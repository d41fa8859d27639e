import { Button } from '@mantine/core';
import type { ReactNode } from 'react';

import { useT } from '../../i18n';
import styles from './table.module.css';
import type { Selection } from './useSelection';

interface Props {
  selection: Selection;
  total: number;
  /** Buttons that act on the chosen rows. */
  children: ReactNode;
}

/** Actions for the selected rows; keeps its place when nothing is chosen. */
export function BulkBar({ selection, total, children }: Props): ReactNode {
  const t = useT();
  const count = selection.count(total);
  return (
    <div className={styles.bulk} data-empty={count === 0 || undefined}>
      <strong aria-live="polite">
        {count > 0 ? t('table.selected', { count }) : t('table.selected.none')}
      </strong>
      {count > 0 && children}
      <span className="grow" />
      {count > 0 && !selection.all && count < total && (
        <Button variant="subtle" size="compact-sm" onClick={selection.chooseAll}>
          {t('table.select.all', { count: total })}
        </Button>
      )}
      {count > 0 && (
        <Button variant="subtle" color="gray" size="compact-sm" onClick={selection.clear}>
          {t('table.select.none')}
        </Button>
      )}
    </div>
  );
}
