import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { visibleText } from '../visible-text';
import styles from './objects.module.css';
import { hasObjectPage, splitObject } from './object-name';

interface Props {
  /** `kind/name`. */
  object: string;
  /** Shown in place of `kind/name`. */
  children?: ReactNode;
}

/** An object as a link to its page; what has no page is shown as it is written. */
export function ObjectLink({ object, children }: Props): ReactNode {
  const { kind, name } = splitObject(object);
  const text = children ?? visibleText(object);
  if (!hasObjectPage(kind) || name === '') return <span>{text}</span>;
  return (
    <Link to="/admin/reconcile/$kind/$name" params={{ kind, name }} className={styles.object}>
      {text}
    </Link>
  );
}
