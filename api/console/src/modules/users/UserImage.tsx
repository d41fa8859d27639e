import type { ReactNode } from 'react';

import type { UserRow } from '../../api/queries/users';
import { useT } from '../../i18n';
import { tagOf } from './user-state';

/** The tag of a user's image, and that of the present container when it is another. */
export function UserImage({ user }: { user: UserRow }): ReactNode {
  const t = useT();
  const { image, observed_image: observed } = user;
  if (!observed || observed === image) return <code title={image}>{tagOf(image)}</code>;
  const [from, to] = [tagOf(observed), tagOf(image)];
  return (
    <code className="nowrap" title={t('users.image.moves', { from: observed, to: image })}>
      {from === to ? `${observed} → ${image}` : `${from} → ${to}`}
    </code>
  );
}
