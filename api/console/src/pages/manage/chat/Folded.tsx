import { type ReactNode, useState } from 'react';

import styles from './chat.module.css';

interface Props {
  icon: ReactNode;
  title: ReactNode;
  children: () => ReactNode;
}

/** One line that shows more on demand. */
export function Folded({ icon, title, children }: Props): ReactNode {
  const [open, setOpen] = useState(false);
  return (
    <details className={styles.folded} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {icon}
        <span className={styles.foldedTitle}>{title}</span>
      </summary>
      {open && <div className={styles.foldedBody}>{children()}</div>}
    </details>
  );
}
