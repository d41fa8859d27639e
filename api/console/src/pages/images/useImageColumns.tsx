import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';

import type { ImageRow } from '../../api/queries/images';
import { Bytes } from '../../components/Bytes';
import type { Column } from '../../components/table/ServerTable';
import { Time } from '../../components/Time';
import { useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import { ImageMenu } from './ImageMenu';
import styles from './images.module.css';
import type { Doomed } from './removal';

/** In place of what an engine of many nodes does not know. */
const UNKNOWN = <span className="dim">–</span>;

/** Columns of the images on the engine. */
export function useImageColumns(onDelete: (doomed: Doomed) => void): Column<ImageRow>[] {
  const t = useT();
  return useMemo<Column<ImageRow>[]>(
    () => [
      {
        id: 'name',
        header: t('users.image'),
        cell: ({ repo_tags: tags, id }) =>
          tags.length > 0 ? (
            tags.map((tag) => (
              <div key={tag}>
                <code>{visibleText(tag)}</code>
              </div>
            ))
          ) : (
            <span className="dim">{t('images.untagged', { id })}</span>
          ),
      },
      {
        id: 'users',
        header: t('section.users'),
        numeric: true,
        cell: ({ user_count: count, repo_tags: [tag], full_id: id }) =>
          count > 0 ? (
            <Link to="/admin/users" search={{ image: tag ?? id }}>
              {t('images.users', { count })}
            </Link>
          ) : (
            <span className="dim">–</span>
          ),
      },
      {
        id: 'size',
        header: t('objects.size'),
        numeric: true,
        drop: 1,
        cell: ({ size }) => (size > 0 ? <Bytes value={size} /> : UNKNOWN),
      },
      {
        id: 'built',
        header: t('images.built'),
        drop: 2,
        cell: ({ created }) => (Date.parse(created) > 0 ? <Time at={created} /> : UNKNOWN),
      },
      { id: 'id', header: t('images.id'), drop: 3, short: true, cell: ({ id }) => <code>{id}</code> },
      {
        id: 'actions',
        header: '',
        numeric: true,
        cell: (image) => (
          <div className={styles.menu}>
            <ImageMenu image={image} onDelete={onDelete} />
          </div>
        ),
      },
    ],
    [t, onDelete],
  );
}
