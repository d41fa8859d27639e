import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import { visibleText } from '../../modules/visible-text';
import styles from './groups.module.css';

type Group = Schemas['Group'];

/** Groups above a group, the group itself, and those in it, each as deep as it is. */
export function GroupTree({
  name,
  above,
  below,
}: {
  name: string;
  above: Group[];
  below: Group[];
}): ReactNode {
  const line = (group: string): ReactNode =>
    group === name ? (
      <strong>{visibleText(group)}</strong>
    ) : (
      <Link to="/admin/groups/$name" params={{ name: group }}>
        {visibleText(group)}
      </Link>
    );
  const inner: ReactNode = (
    <ul className={styles.tree}>
      <li>
        {line(name)}
        {below.length > 0 && (
          <ul className={styles.tree}>
            {below.map((group) => (
              <li key={group.name}>
                {line(group.name)} <small>{group.member_count}</small>
              </li>
            ))}
          </ul>
        )}
      </li>
    </ul>
  );
  return above.reduceRight(
    (tree, group) => (
      <ul className={styles.tree}>
        <li>
          {line(group.name)}
          {tree}
        </li>
      </ul>
    ),
    inner,
  );
}
