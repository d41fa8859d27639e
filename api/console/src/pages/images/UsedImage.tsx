import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { LinkButton } from '../../components/LinkButton';
import { useT } from '../../i18n';
import { shortImage } from '../../modules/image-name';
import styles from './images.module.css';
import type { Removal } from './removal';

/** Alternatives that are offered as buttons. */
const MOST = 4;

interface Props {
  /** The image as it was named, and as people say it. */
  name: string;
  said: string;
  /** Users that have it, as the list counts them; with none, a rollout moves users to it. */
  userCount: number;
  removal: Extract<Removal, { isUsed: true }>;
}

/** Users who keep an image from being deleted, with the images they could move to. */
export function UsedImage({ name, said, userCount, removal }: Props): ReactNode {
  const t = useT();
  const { users, alternatives } = removal;
  const isHeldByRollout = userCount === 0;
  // The server names no more than 200.
  const count = Math.max(users.length, userCount);
  return (
    <>
      <p>{t(isHeldByRollout ? 'images.needed' : 'images.used', { name: said, count })}</p>
      <div className={styles.users}>
        {users.map((user) => (
          <Link key={user} to="/admin/users/$name" params={{ name: user }}>
            {user}
          </Link>
        ))}
      </div>
      {isHeldByRollout ? (
        <div>
          <Link to="/admin/rollouts">{t('images.show.rollouts')}</Link>
        </div>
      ) : (
        <>
          <p>{t(alternatives.length > 0 ? 'images.used.move' : 'images.used.pull')}</p>
          <div className={styles.buttons}>
            {alternatives.slice(0, MOST).map((image) => (
              <LinkButton
                key={image}
                size="compact-md"
                to="/admin/rollouts/new"
                search={{ image, who: 'image', from: name }}
              >
                {t('rollout.verb', { count, image: shortImage(image) })}…
              </LinkButton>
            ))}
          </div>
        </>
      )}
    </>
  );
}
