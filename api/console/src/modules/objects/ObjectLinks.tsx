import type { ReactNode } from 'react';

import { ObjectLink } from './ObjectLink';
import styles from './objects.module.css';

/** Objects that are written one after the other with commas, each as a link. */
export function ObjectLinks({ objects }: { objects: string }): ReactNode {
  return objects
    .split(',')
    .filter((object) => object !== '')
    .map((object) => (
      <div key={object} className={styles.line}>
        <ObjectLink object={object.trim()} />
      </div>
    ));
}
