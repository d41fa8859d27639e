import { ActionIcon } from '@mantine/core';
import IconChevronLeft from '@tabler/icons-react/icons/IconChevronLeft';
import IconChevronRight from '@tabler/icons-react/icons/IconChevronRight';
import type { ReactNode } from 'react';

import type { Page } from '../../api/types';
import { useT } from '../../i18n';
import styles from './table.module.css';

interface Props {
  page: Page;
  onPage: (page: number) => void;
}

/** "1–50 of 10,412" with a way to the pages beside it. */
export function Pager({ page, onPage }: Props): ReactNode {
  const t = useT();
  if (page.total === 0) return null;
  const from = (page.page - 1) * page.page_size + 1;
  const to = Math.min(page.total, page.page * page.page_size);
  return (
    <div className={styles.pager}>
      <span aria-live="polite">{t('table.range', { from, to, total: page.total })}</span>
      {page.total_pages > 1 && (
        <>
          <ActionIcon
            variant="default"
            aria-label={t('table.previous')}
            disabled={page.page <= 1}
            onClick={() => onPage(page.page - 1)}
          >
            <IconChevronLeft size={16} aria-hidden />
          </ActionIcon>
          <ActionIcon
            variant="default"
            aria-label={t('table.next')}
            disabled={page.page >= page.total_pages}
            onClick={() => onPage(page.page + 1)}
          >
            <IconChevronRight size={16} aria-hidden />
          </ActionIcon>
        </>
      )}
    </div>
  );
}
