import { isValidElement, type ReactNode } from 'react';

import { Copy } from '../../../components/Copy';
import { useT } from '../../../i18n';
import styles from './markdown.module.css';

function textOf(node: ReactNode): string {
  if (typeof node === 'string') return node;
  if (Array.isArray(node)) return (node as ReactNode[]).map(textOf).join('');
  return isValidElement<{ children?: ReactNode }>(node) ? textOf(node.props.children) : '';
}

function languageOf(node: ReactNode): string {
  const name = isValidElement<{ className?: string }>(node) ? (node.props.className ?? '') : '';
  return /(?:^| )language-(\S{1,30})/.exec(name)?.[1] ?? '';
}

/** A block of code with the button that copies it. */
export function CodeBlock({ children }: { children?: ReactNode }): ReactNode {
  const t = useT();
  const text = textOf(children);
  return (
    <div className={styles.code} dir="ltr">
      <div className={styles.codeHead}>
        <small>{languageOf(children)}</small>
        <Copy text={text.replace(/\n$/, '')} />
      </div>
      {/* A region that scrolls has to be reached by keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre tabIndex={0} role="region" aria-label={t('chat.code')}>
        {text}
      </pre>
    </div>
  );
}
