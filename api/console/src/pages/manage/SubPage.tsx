import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { ObjectHeader } from '../../components/ObjectHeader';
import { useT } from '../../i18n';

interface Props {
  title: string;
  /** Sentence below the title. */
  text?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

/** A page below the user's overview, with the way back to it. */
export function SubPage({ title, text, actions, children }: Props): ReactNode {
  const t = useT();
  return (
    <div className="stack">
      <div>
        <ObjectHeader
          crumbs={<Link to="/manage/agent">{t('manage.title')}</Link>}
          name={title}
          actions={actions}
        />
        {text !== undefined && <div className="dim">{text}</div>}
      </div>
      {children}
    </div>
  );
}
