import { Menu } from '@mantine/core';
import IconChevronDown from '@tabler/icons-react/icons/IconChevronDown';
import IconX from '@tabler/icons-react/icons/IconX';
import type { ReactNode } from 'react';

import { useT } from '../../i18n';
import styles from './table.module.css';

/** A filter of a list. One with a single option is a switch. */
export interface Filter {
  name: string;
  label: string;
  options: { value: string; text: string }[];
}

interface Props {
  filter: Filter;
  values: string[];
  onChange: (values: string[]) => void;
}

/** A filter that says its value and can be removed. */
export function FilterChip({ filter, values, onChange }: Props): ReactNode {
  const t = useT();
  const { options, label } = filter;
  const [only] = options;
  const chosen = options.filter(({ value }) => values.includes(value)).map(({ text }) => text);
  const active = values.length > 0;
  if (options.length === 1 && only !== undefined) {
    return (
      <button
        type="button"
        className={styles.chip}
        aria-pressed={active}
        onClick={() => onChange(active ? [] : [only.value])}
      >
        {label}
        {active && <IconX size={13} aria-hidden />}
      </button>
    );
  }
  return (
    <span className={styles.chipGroup} data-active={active || undefined}>
      <Menu position="bottom-start" closeOnItemClick={false}>
        <Menu.Target>
          <button type="button" className={styles.chip} data-active={active || undefined}>
            {active ? `${label}: ${chosen.length > 0 ? chosen.join(', ') : values.join(', ')}` : label}
            <IconChevronDown size={13} aria-hidden />
          </button>
        </Menu.Target>
        <Menu.Dropdown className={styles.options}>
          {options.map(({ value, text }) => {
            const on = values.includes(value);
            return (
              <Menu.CheckboxItem
                key={value}
                checked={on}
                onChange={() => onChange(on ? values.filter((one) => one !== value) : [...values, value])}
              >
                {text}
              </Menu.CheckboxItem>
            );
          })}
        </Menu.Dropdown>
      </Menu>
      {active && (
        <button
          type="button"
          className={styles.chipRemove}
          aria-label={t('table.filter.remove', { name: label })}
          onClick={() => onChange([])}
        >
          <IconX size={13} aria-hidden />
        </button>
      )}
    </span>
  );
}
