import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { visibleText } from '../visible-text';
import { hasObjectPage, splitObject } from './object-name';
import styles from './objects.module.css';

interface Props {
  /** `kind/name`. */
  object: string;
  /** Shown in place of `kind/name`. */
  children?: ReactNode;
}

/** Pages of what is no object of a reconciler, by kind; `$name` stands for the name. */
const PAGES: Readonly<Record<string, string>> = {
  group: '/admin/groups/$name',
  superadmin: '/admin/superadmins/$name',
  reconciler: '/admin/reconcile',
  service: '/admin/reconcile',
};

/** An object as a link to its page; what has no page is shown as it is written. */
export function ObjectLink({ object, children }: Props): ReactNode {
  const { kind, name } = splitObject(object);
  const text = children ?? visibleText(object);
  const page = hasObjectPage(kind) ? '/admin/reconcile/$kind/$name' : PAGES[kind];
  if (page === undefined || name === '') return <span>{text}</span>;
  return (
    <Link to={page as '/admin/reconcile/$kind/$name'} params={{ kind, name }} className={styles.object}>
      {text}
    </Link>
  );
}
