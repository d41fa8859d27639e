import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';

import type { ImageRow } from '../../api/queries/images';
import { TonePill } from '../../components/StatusPill';
import type { Column } from '../../components/table/ServerTable';
import { useT } from '../../i18n';
import { fullReference, shortImage } from '../../modules/image-name';
import styles from './images.module.css';
import { openPulls } from './pulls/open-pulls';
import { usePullsOfPage } from './pulls/pulls-context';

/** A tag of a repository. */
export interface TagRow {
  tag: string;
}

/** Columns of the tags in a registry: which of them are on the engine, and pulling one. */
export function useTagColumns(repository: string | undefined, local: ImageRow[] = []): Column<TagRow>[] {
  const t = useT();
  const pulls = usePullsOfPage();
  return useMemo<Column<TagRow>[]>(() => {
    const there = new Set(
      local.flatMap(({ repo_tags: tags }) => tags).map((tag) => fullReference(tag, undefined)),
    );
    const pulled = new Set(
      openPulls(pulls).flatMap(({ reference, view }) => (view?.end === undefined ? reference : [])),
    );
    const full = ({ tag }: TagRow): string => `${repository ?? ''}:${tag}`;
    return [
      { id: 'tag', header: t('registry.tag'), cell: ({ tag }) => <code>{tag}</code> },
      {
        id: 'engine',
        header: t('images.tab.engine'),
        drop: 1,
        cell: (row) =>
          there.has(full(row)) ? (
            <TonePill tone="ok">{t('registry.there')}</TonePill>
          ) : (
            <span className="dim">–</span>
          ),
      },
      {
        id: 'pull',
        header: '',
        numeric: true,
        cell: (row) => {
          const image = shortImage(full(row));
          const key = there.has(full(row)) ? 'pull.again' : 'pull.verb';
          return (
            <div className={styles.rowActions}>
              <Link to="/admin/rollouts/new" search={{ image: full(row) }}>
                {t('images.move')}
              </Link>
              <Button
                size="compact-sm"
                disabled={pulled.has(full(row))}
                onClick={() => pulls.start(full(row))}
              >
                {pulled.has(full(row)) ? t('pull.now') : t(key, { image })}
              </Button>
            </div>
          );
        },
      },
    ];
  }, [t, repository, local, pulls]);
}
