import { Button, SegmentedControl } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useId, useState } from 'react';

import { get } from '../../../api/client';
import { Failure } from '../../../api/failure';
import type { Schemas } from '../../../api/types';
import { Copy } from '../../../components/Copy';
import { useToasts } from '../../../components/toast-store';
import { Rich, useT } from '../../../i18n';
import styles from '../manage.module.css';
import { serviceAddress } from '../service-address';
import { RotateToken } from './RotateToken';
import { FILES, makeSnippet, type Program, PROGRAMS, type Tools } from './snippets';

const NAMES: Record<Program, string> = {
  claude: 'Claude Code',
  cursor: 'Cursor',
  vscode: 'VS Code',
  goose: 'Goose',
  'mcp-remote': 'mcp-remote',
  typescript: 'TypeScript SDK',
};

/** Stands for the token until it is asked for. */
const HIDDEN = '••••••••';

async function readToken(): Promise<string> {
  return (await get<Schemas['McpToken']>('/api/mcp/token')).token;
}

/** Snippets with which other programs use the tools of the user's agent. The token is read only when it is asked for. */
export function McpCard(): ReactNode {
  const t = useT();
  const id = useId();
  const toasts = useToasts();
  const [program, setProgram] = useState<Program>('claude');
  const [tools, setTools] = useState<Tools>('browser');
  const [token, setToken] = useState<string>();
  const [rotates, setRotates] = useState(false);
  const address = serviceAddress();
  const file = FILES[program];
  const snippet = (secret: string): string => makeSnippet(program, { address, tools, token: secret });
  const fail = (thrown: unknown): void => toasts.fail(t('mcp.token.failed'), Failure.from(thrown));
  const show = useMutation({ mutationFn: readToken, onSuccess: setToken, onError: fail });
  const copied = async (make: (secret: string) => string): Promise<string> => {
    try {
      return make(token ?? (await readToken()));
    } catch (thrown) {
      fail(thrown);
      throw thrown;
    }
  };
  return (
    <section className="card" aria-labelledby={id}>
      <div className="row">
        <h2 id={id} className="grow">
          {t('mcp.title')}
        </h2>
        <SegmentedControl
          size="xs"
          aria-label={t('mcp.tools')}
          value={tools}
          onChange={(value) => setTools(value as Tools)}
          data={[
            { value: 'browser', label: t('connect.browser') },
            { value: 'computer', label: t('connect.desktop') },
          ]}
        />
      </div>
      <div className={styles.chips} role="group" aria-label={t('mcp.program')}>
        {PROGRAMS.map((one) => (
          <button
            key={one}
            type="button"
            className={styles.chip}
            aria-pressed={one === program}
            onClick={() => setProgram(one)}
          >
            {NAMES[one]}
          </button>
        ))}
      </div>
      {file !== undefined && (
        <small>
          <Rich k="mcp.file" values={{ file: <code>{file}</code> }} />
        </small>
      )}
      {program === 'mcp-remote' && <small>{t('mcp.remote')}</small>}
      {/* Long lines scroll; the region is reached by keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre className={styles.snippet} tabIndex={0} aria-label={t('mcp.snippet', { program: NAMES[program] })}>
        {snippet(token ?? HIDDEN)}
      </pre>
      <div className="row">
        <Copy text={() => copied(snippet)} label={t('mcp.copy')} />
        <Copy text={() => copied((secret) => secret)} label={t('mcp.copy.token')} />
        <Button
          size="compact-sm"
          disabled={show.isPending}
          onClick={() => (token === undefined ? show.mutate() : setToken(undefined))}
        >
          {t(token === undefined ? 'mcp.show' : 'mcp.hide')}
        </Button>
        <span className="grow" />
        <Button size="compact-sm" onClick={() => setRotates(true)}>
          {t('mcp.rotate')}
        </Button>
      </div>
      <RotateToken opened={rotates} onClose={() => setRotates(false)} onRotated={() => setToken(undefined)} />
    </section>
  );
}
