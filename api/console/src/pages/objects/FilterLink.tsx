import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

interface Props {
  /** The list. */
  to: '/admin/events' | '/admin/audit';
  filter: Record<string, string>;
  children: ReactNode;
}

/** A value in a list that leads to all entries with the same value. */
export function FilterLink({ to, filter, children }: Props): ReactNode {
  return (
    <Link to={to} search={filter as never}>
      {children}
    </Link>
  );
}
