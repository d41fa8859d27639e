import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';

import type { Schemas } from '../../api/types';
import type { Column } from '../../components/table/ServerTable';
import { useT } from '../../i18n';
import { shortImage } from '../../modules/image-name';
import { visibleText } from '../../modules/visible-text';

/** Columns of the users who have another image. */
export function useCandidateColumns(): Column<Schemas['ImageUser']>[] {
  const t = useT();
  return useMemo<Column<Schemas['ImageUser']>[]>(
    () => [
      {
        id: 'name',
        header: t('users.name'),
        cell: ({ username }) => (
          <Link to="/admin/users/$name" params={{ name: username }}>
            {username}
          </Link>
        ),
      },
      {
        id: 'image',
        header: t('candidates.has'),
        cell: ({ image }) => <code title={image}>{visibleText(shortImage(image))}</code>,
      },
      { id: 'id', header: t('images.id'), drop: 2, short: true, cell: ({ image_id: id }) => shortId(id) },
      {
        id: 'groups',
        header: t('users.groups'),
        drop: 1,
        cell: ({ groups }) => (groups === '' ? <span className="dim">–</span> : groups),
      },
    ],
    [t],
  );
}

/** The digits of an id that people are shown; the same tag may mean an older image. */
function shortId(id: string | null | undefined) {
  if (!id) return <span className="dim">–</span>;
  return <code>{id.replace(/^sha256:/, '').slice(0, 12)}</code>;
}
