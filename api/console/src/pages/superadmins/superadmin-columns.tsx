import { Link } from '@tanstack/react-router';

import type { Schemas } from '../../api/types';
import { TonePill } from '../../components/StatusPill';
import type { Column } from '../../components/table/ServerTable';
import { Time } from '../../components/Time';
import type { T } from '../../i18n';
import type { AskedOfSuperadmin } from './SuperadminDialogs';
import { SuperadminButtons } from './SuperadminButtons';
import styles from './superadmins.module.css';

/** Columns of the administrators. `own`: the account of this session. */
export function superadminColumns(
  t: T,
  own: string,
  onAsk: (asked: AskedOfSuperadmin) => void,
): Column<Schemas['SuperadminItem']>[] {
  return [
    {
      id: 'name',
      header: t('objects.name'),
      cell: ({ username: name }) => (
        <>
          <Link to="/admin/superadmins/$name" params={{ name }}>
            {name}
          </Link>{' '}
          {name === own && <TonePill tone="ok">{t('superadmins.you')}</TonePill>}
        </>
      ),
    },
    {
      id: 'created',
      header: t('objects.created'),
      drop: 2,
      cell: ({ created_at: at }) => <Time at={at} />,
    },
    {
      id: 'login',
      header: t('users.last.login'),
      drop: 1,
      cell: ({ last_login_at: at }) =>
        at ? <Time at={at} /> : <span className="dim">{t('users.never')}</span>,
    },
    {
      id: 'actions',
      header: t('files.actions'),
      hidesHeader: true,
      cell: ({ username: name }) => (
        <div className={styles.actions}>
          <SuperadminButtons name={name} isOwn={name === own} onAsk={onAsk} size="compact-sm" />
        </div>
      ),
    },
  ];
}
