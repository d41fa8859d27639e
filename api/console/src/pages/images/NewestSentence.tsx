import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { candidatesQuery, localTagsQuery } from '../../api/queries/images';
import { useT } from '../../i18n';
import { shortImage } from '../../modules/image-name';
import styles from './images.module.css';

/** The newest image on the engine, and how many users have another one. */
export function NewestSentence(): ReactNode {
  const t = useT();
  const { data: local } = useQuery(localTagsQuery);
  const [tag] = local?.tags ?? [];
  const query = { tag, page: 1, page_size: 1 };
  const { data } = useQuery({ ...candidatesQuery(query), enabled: tag !== undefined });
  if (tag === undefined || data === undefined) return <small>{'\u00a0'}</small>;
  const image = shortImage(data.target);
  if (data.total === 0) return <small>{t('images.newest.all', { image })}</small>;
  return (
    <small className={styles.linked}>
      {t('images.newest', { image })}{' '}
      <Link to="/admin/images/candidates" search={{ tag }}>
        {t('images.newest.other', { count: data.total })}
      </Link>
    </small>
  );
}
