import type { ReactNode } from 'react';

import styles from './signin.module.css';

interface Props<V extends string> {
  label: string;
  value: V;
  options: { value: V; text: string; lang?: string }[];
  onChange: (value: V) => void;
}

/** A few values beside each other, of which one is chosen. */
export function Choice<V extends string>({ label, value, options, onChange }: Props<V>): ReactNode {
  return (
    <div role="group" aria-label={label} className={styles.choice}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          lang={option.lang}
          aria-pressed={option.value === value}
          onClick={() => onChange(option.value)}
        >
          {option.text}
        </button>
      ))}
    </div>
  );
}
