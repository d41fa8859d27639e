import IconFile from '@tabler/icons-react/icons/IconFile';
import { type ReactNode, useState } from 'react';

import { fileUrl } from '../../../chat/api';
import type { SentFile } from '../../../chat/protocol';
import { Bytes } from '../../../components/Bytes';
import { useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import styles from './chat.module.css';

/** Files that the agent sent: small pictures, downloads, and what could not be fetched. */
export function SentFiles({ conversation, files }: { conversation: string; files: SentFile[] }): ReactNode {
  return (
    <ul className={styles.files}>
      {files.map((file, at) => (
        <li key={at}>
          <OneFile conversation={conversation} file={file} />
        </li>
      ))}
    </ul>
  );
}

function OneFile({ conversation, file }: { conversation: string; file: SentFile }): ReactNode {
  const t = useT();
  const [broken, setBroken] = useState(false);
  const name = visibleText(file.name);
  if (file.file === null) {
    return (
      <span className={styles.bad}>
        {t('chat.file.failed', { name, error: visibleText(file.error ?? '') })}
      </span>
    );
  }
  const url = fileUrl(conversation, file.file);
  if (file.picture && !broken) {
    return (
      <a href={url} target="_blank" rel="noopener noreferrer" aria-label={t('chat.file.open', { name })}>
        <img src={url} alt={name} loading="lazy" className={styles.picture} onError={() => setBroken(true)} />
      </a>
    );
  }
  return (
    <a href={url} download={file.name} className={styles.file}>
      <IconFile size={18} aria-hidden />
      <span className="visually-hidden">{t('chat.file.download')} </span>
      <span className={styles.fileName}>{name}</span>
      {file.size !== null && (
        <small>
          <Bytes value={file.size} />
        </small>
      )}
    </a>
  );
}
