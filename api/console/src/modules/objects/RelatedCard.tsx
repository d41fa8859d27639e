import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { Described } from '../../api/queries/users';
import { DetailCard } from '../../components/DetailCard';
import { useT } from '../../i18n';
import { visibleText } from '../visible-text';
import { ObjectLink } from './ObjectLink';
import styles from './objects.module.css';
import { ownPages, relatedObjects } from './related';

interface Props {
  object: Described;
  /** The card is on the page of the object's own section: links to its page of reconciliation. */
  isOwnPage?: boolean;
}

/** Links from an object to the pages that show it, and to the objects that belong to it. */
export function RelatedCard({ object, isOwnPage = false }: Props): ReactNode {
  const t = useT();
  const pages = isOwnPage ? [] : ownPages(object);
  const objects = isOwnPage ? [object.object, ...relatedObjects(object)] : relatedObjects(object);
  if (pages.length + objects.length === 0) return null;
  return (
    <DetailCard title={t('related.title')}>
      <ul className={styles.related}>
        {pages.map(({ text, name, to, search }) => (
          <li key={text}>
            <Link
              to={to as '/admin/users/$name'}
              params={{ name, id: name } as { name: string }}
              search={(search ?? {}) as never}
            >
              {t(text, { name: visibleText(name) })}
            </Link>
          </li>
        ))}
        {objects.map((one) => (
          <li key={one}>
            <ObjectLink object={one} />
          </li>
        ))}
      </ul>
    </DetailCard>
  );
}
