import { type ReactNode, useId } from 'react';

import styles from './detail.module.css';

interface Props {
  title: string;
  /** Buttons and links beside the title. */
  aside?: ReactNode;
  children: ReactNode;
}

/** A part of an object's page under its heading. */
export function DetailCard({ title, aside, children }: Props): ReactNode {
  const id = useId();
  return (
    <section className={`card ${styles.card ?? ''}`} aria-labelledby={id}>
      {aside === undefined ? (
        <h2 id={id}>{title}</h2>
      ) : (
        <div className="row">
          <h2 id={id} className="grow">
            {title}
          </h2>
          {aside}
        </div>
      )}
      {children}
    </section>
  );
}
