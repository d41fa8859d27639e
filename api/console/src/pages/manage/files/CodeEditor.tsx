import { type ReactNode, useEffect, useRef, useState } from 'react';

import { Failure } from '../../../api/failure';
import { ErrorState } from '../../../components/ErrorState';
import { useT } from '../../../i18n';
import type { Editor } from './codemirror';
import { usePhrases } from './usePhrases';

interface Props {
  /** Name of the file, for the highlighting. */
  name: string;
  /** The text at the beginning; another one needs another `key`. */
  text: string;
  /** Text of the file as it is now, shown beside. */
  other?: string;
  className?: string;
  onChange: (text: string) => void;
  onSave: () => void;
}

/** A text editor, or two beside each other; loaded when it is needed. */
export function CodeEditor({ name, text, other, className, onChange, onSave }: Props): ReactNode {
  const t = useT();
  const host = useRef<HTMLDivElement>(null);
  const handlers = useRef({ onChange, onSave });
  const [first] = useState({ text, other });
  const [failure, setFailure] = useState<Failure>();
  const phrases = usePhrases();
  const label = t('editor.label', { name });
  useEffect(() => {
    handlers.current = { onChange, onSave };
  });
  useEffect(() => {
    let editor: Editor | undefined;
    let closed = false;
    const make = async (): Promise<void> => {
      const { makeComparison, makeEditor } = await import('./codemirror');
      if (closed || host.current === null) return;
      const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: 'open' });
      const options = {
        root,
        name,
        label,
        phrases,
        text: first.text,
        onChange: (next: string) => handlers.current.onChange(next),
        onSave: () => handlers.current.onSave(),
      };
      editor =
        first.other === undefined ? makeEditor(options) : makeComparison({ ...options, other: first.other });
    };
    make().catch((thrown: unknown) => setFailure(Failure.from(thrown)));
    return () => {
      closed = true;
      editor?.destroy();
    };
  }, [name, label, phrases, first]);
  if (failure) return <ErrorState failure={failure} />;
  return <div ref={host} className={className} />;
}
