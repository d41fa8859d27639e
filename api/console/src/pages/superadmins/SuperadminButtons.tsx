import type { ButtonProps } from '@mantine/core';
import type { ReactNode } from 'react';

import { ReasonedButton } from '../../components/ReasonedButton';
import { useT } from '../../i18n';
import type { AskedOfSuperadmin } from './SuperadminDialogs';

interface Props {
  name: string;
  /** It is the account of this session. */
  isOwn: boolean;
  onAsk: (asked: AskedOfSuperadmin) => void;
  size?: ButtonProps['size'];
}

/** Buttons that reset the password of an administrator and delete the account; for the own one both say why not. */
export function SuperadminButtons({ name, isOwn, onAsk, size }: Props): ReactNode {
  const t = useT();
  const label = (action: string): string => t('table.action', { action, name });
  return (
    <>
      <ReasonedButton
        size={size}
        reason={isOwn ? t('superadmins.own.reset') : undefined}
        aria-label={label(t('reset.verb'))}
        onClick={() => onAsk({ action: 'reset', name })}
      >
        {t('user.reset')}
      </ReasonedButton>
      <ReasonedButton
        size={size}
        color="bad"
        reason={isOwn ? t('superadmins.own.delete') : undefined}
        aria-label={label(t('users.delete'))}
        onClick={() => onAsk({ action: 'delete', name })}
      >
        {t('users.delete.dots')}
      </ReasonedButton>
    </>
  );
}
