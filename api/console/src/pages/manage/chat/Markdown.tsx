import { Component, memo, type ReactNode, useMemo } from 'react';
import ReactMarkdown, { type Components } from 'react-markdown';
import remarkGfm from 'remark-gfm';

import { cutMarkdown, limitDepth, safeUrl } from '../../../chat/markdown-parts';
import { useT } from '../../../i18n';
import { CodeBlock } from './CodeBlock';
import styles from './markdown.module.css';

type Parts = Record<string, unknown> & { children?: ReactNode };

/** A link that opens in another tab; text where its address is none that may be followed. */
function OuterLink({ href, children }: { href?: string; children?: ReactNode }): ReactNode {
  const url = safeUrl(href ?? '');
  if (url === undefined) return children;
  return (
    <a href={url} title={url} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

/** A picture of elsewhere as a link: to load it would tell its server who reads. */
function PictureLink({ src, alt }: { src?: unknown; alt?: string }): ReactNode {
  const t = useT();
  const url = typeof src === 'string' ? src : '';
  return (
    <OuterLink href={url}>
      {t('chat.picture', { name: alt === undefined || alt === '' ? url : alt })}
    </OuterLink>
  );
}

function WideTable({ children }: Parts): ReactNode {
  const t = useT();
  return (
    // A region that scrolls has to be reached by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className={styles.table} tabIndex={0} role="region" aria-label={t('chat.table')}>
      <table>{children}</table>
    </div>
  );
}

// Headings of a text are below those of the page; ids would be the same in several texts.
const COMPONENTS: Components = {
  h1: ({ children }) => <h3>{children}</h3>,
  h2: ({ children }) => <h4>{children}</h4>,
  h3: ({ children }) => <h5>{children}</h5>,
  h4: ({ children }) => <h6>{children}</h6>,
  h5: ({ children }) => <h6>{children}</h6>,
  h6: ({ children }) => <h6>{children}</h6>,
  li: ({ children }) => <li>{children}</li>,
  a: ({ href, children }) => <OuterLink href={href}>{children}</OuterLink>,
  img: ({ src, alt }) => <PictureLink src={src} alt={alt} />,
  input: ({ checked }) => (checked === true ? '☑ ' : '☐ '),
  pre: ({ children }) => <CodeBlock>{children}</CodeBlock>,
  table: ({ children }) => <WideTable>{children}</WideTable>,
};
const PLUGINS = [remarkGfm, limitDepth];
const keepUrl = (url: string): string => safeUrl(url) ?? '';

interface Shown {
  text: string;
  failed: boolean;
}

/** Shows `plain` when a text cannot be formatted; the next text is tried again. */
class Unformatted extends Component<{ text: string; plain: ReactNode; children: ReactNode }, Shown> {
  override state: Shown = { text: '', failed: false };

  static getDerivedStateFromError(): Partial<Shown> {
    return { failed: true };
  }

  static getDerivedStateFromProps({ text }: { text: string }, shown: Shown): Shown | null {
    return text === shown.text ? null : { text, failed: false };
  }

  override render(): ReactNode {
    return this.state.failed ? this.props.plain : this.props.children;
  }
}

const PlainPart = ({ text }: { text: string }): ReactNode => {
  const t = useT();
  return (
    <div>
      <small>{t('chat.plain')}</small>
      <p className={styles.plain}>{text}</p>
    </div>
  );
};

const FormattedPart = memo(function FormattedPart({ text }: { text: string }): ReactNode {
  return (
    <Unformatted text={text} plain={<PlainPart text={text} />}>
      <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS} urlTransform={keepUrl}>
        {text}
      </ReactMarkdown>
    </Unformatted>
  );
});

/** A Markdown text of the agent: no HTML, no pictures of elsewhere. */
export function Markdown({ text }: { text: string }): ReactNode {
  const parts = useMemo(() => cutMarkdown(text), [text]);
  return (
    <div className={styles.text} dir="auto">
      {parts.map((part, at) =>
        part.plain ? <PlainPart key={at} text={part.text} /> : <FormattedPart key={at} text={part.text} />,
      )}
    </div>
  );
}
