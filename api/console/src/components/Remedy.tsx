import { Link } from '@tanstack/react-router';
import { Fragment, type ReactNode } from 'react';

/** A setting inside a sentence, such as `container.memory_limit_mb`. */
const SETTING =
  /\b((?:adapter|agent|chat|container|executors|files|image|ldap|logs|mcp|oidc|security|skills|web)\.[a-z_]+)\b/;

/** Remedy as a sentence; settings that it names lead to their forms. */
export function Remedy({ text }: { text: string }): ReactNode {
  return text.split(SETTING).map((part, at) => (
    <Fragment key={at}>
      {at % 2 === 0 ? (
        part
      ) : (
        <Link to="/admin/config" search={{ key: part }}>
          {part}
        </Link>
      )}
    </Fragment>
  ));
}
