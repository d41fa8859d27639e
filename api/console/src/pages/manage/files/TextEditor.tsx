import { Button } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';

import type { Schemas } from '../../../api/types';
import { ErrorState } from '../../../components/ErrorState';
import { useT } from '../../../i18n';
import { CodeEditor } from './CodeEditor';
import { downloadUrl } from './FileMenu';
import styles from './files.module.css';
import { SaveConflict } from './SaveConflict';
import { useTextSave } from './useTextSave';

/** A text file that can be changed. */
export function TextEditor({ file }: { file: Schemas['TextFile'] }): ReactNode {
  const t = useT();
  const navigate = useNavigate();
  const save = useTextSave(file);
  // Text that comes out of a comparison begins another editor.
  const [shown, setShown] = useState({ version: 0, text: save.text });
  return (
    <div className={styles.editor}>
      <div className={styles.editorBar}>
        <Button
          variant="filled"
          size="compact-md"
          disabled={!save.dirty || save.saving}
          onClick={() => void save.save()}
        >
          {save.saving ? t('form.saving') : t('form.save')}
        </Button>
        <small role="status" className="grow">
          {save.dirty ? t('form.unsaved') : t('editor.keys')}
        </small>
        <a href={downloadUrl(file.path)} download>
          {t('files.download')}
        </a>
      </div>
      {save.failure && <ErrorState title={t('form.failed')} failure={save.failure} />}
      <CodeEditor
        key={shown.version}
        name={file.filename}
        text={shown.text}
        className={styles.code}
        onChange={save.change}
        onSave={() => void save.save()}
      />
      {save.conflict && (
        <SaveConflict
          file={file}
          save={save}
          onMerged={(text) => {
            setShown(({ version }) => ({ version: version + 1, text }));
          }}
          onKept={(path) => void navigate({ to: '/manage/files/open', search: { path } })}
        />
      )}
    </div>
  );
}
