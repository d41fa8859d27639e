import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';

import { post } from '../../api/client';
import { Failure } from '../../api/failure';
import type { Schemas } from '../../api/types';
import { DialogFrame } from '../../components/DialogFrame';
import { useT } from '../../i18n';
import { CreatedUsers } from './CreatedUsers';
import { CreateForm, type NewUsers } from './CreateForm';
import { withPasswords } from './parse-users';

interface Props {
  onClose: () => void;
  /** Called with the task that makes the containers. */
  onTask: (task: string | undefined) => void;
}

/** Dialog that creates one user or many, and shows their passwords once. */
export function CreateUsers({ onClose, onTask }: Props): ReactNode {
  const t = useT();
  const client = useQueryClient();
  const [results, setResults] = useState<Schemas['BatchOutcome'][]>();
  const [failure, setFailure] = useState<Failure>();
  const [working, setWorking] = useState(false);
  const create = async ({ users, image, groups }: NewUsers): Promise<void> => {
    setWorking(true);
    setFailure(undefined);
    try {
      const hasPasswords = users.some(({ password }) => password !== '');
      const answer = await post<Schemas['BatchCreated']>('/api/admin/users/batch-create', {
        usernames: users.map(({ name }) => name),
        passwords: hasPasswords ? users.map(({ password }) => password) : undefined,
        image_tag: image === '' ? undefined : image,
        groups: groups.length > 0 ? groups : undefined,
        wait: 0,
      });
      setResults(withPasswords(answer.results, users));
      onTask(answer.task_id ?? undefined);
      void client.invalidateQueries({ queryKey: ['list', 'user'] });
    } catch (thrown) {
      setFailure(Failure.from(thrown));
    }
    setWorking(false);
  };
  const created = results?.filter(({ success }) => success).length ?? 0;
  return (
    <DialogFrame
      opened
      size={560}
      title={results === undefined ? t('create.title') : t('create.done', { count: created })}
      // Passwords are shown once: the dialog is left by its button only.
      onClose={results === undefined && !working ? onClose : undefined}
    >
      {results === undefined ? (
        <CreateForm
          working={working}
          failure={failure}
          onCreate={(users) => void create(users)}
          onClose={onClose}
        />
      ) : (
        <CreatedUsers results={results} onClose={onClose} />
      )}
    </DialogFrame>
  );
}
