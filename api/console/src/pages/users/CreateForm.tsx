import { Button, FileButton, MultiSelect, NativeSelect, Textarea } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';

import type { Failure } from '../../api/failure';
import { groupsQuery, tagsQuery } from '../../api/queries/users';
import dialog from '../../components/dialog.module.css';
import { ErrorState } from '../../components/ErrorState';
import { useT } from '../../i18n';
import { type NewUser, parseUsers } from './parse-users';

/** Most users of one request. */
const MOST = 500;

/** The users to create, with what all of them get. */
export interface NewUsers {
  users: NewUser[];
  /** Empty: the configured tag. */
  image: string;
  groups: string[];
}

interface Props {
  working: boolean;
  failure?: Failure;
  onCreate: (users: NewUsers) => void;
  onClose: () => void;
}

/** Form for new users: names by hand, pasted or from a CSV file, image and groups. */
export function CreateForm({ working, failure, onCreate, onClose }: Props): ReactNode {
  const t = useT();
  const [text, setText] = useState('');
  const [image, setImage] = useState('');
  const [groups, setGroups] = useState<string[]>([]);
  const { data: known } = useQuery(groupsQuery);
  const { data: tags } = useQuery(tagsQuery);
  const { users, repeated } = parseUsers(text);
  const names = (known?.groups ?? []).filter(({ source }) => source === 'local').map(({ name }) => name);
  const tooMany = users.length > MOST;
  const given = users.filter(({ password }) => password !== '').length;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (users.length > 0 && !tooMany && !working) onCreate({ users, image, groups });
  };
  return (
    <form onSubmit={submit} className="stack" autoComplete="off">
      <Textarea
        label={t('create.names')}
        description={t('create.names.hint')}
        error={tooMany ? t('create.too.many', { most: MOST }) : undefined}
        value={text}
        rows={5}
        autoFocus
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <div className="row">
        <FileButton
          accept=".csv,.txt,text/csv,text/plain"
          onChange={(file) => void file?.text().then(setText)}
        >
          {(props) => (
            <Button {...props} size="compact-md">
              {t('create.file')}
            </Button>
          )}
        </FileButton>
        <small role="status">
          {users.length > 0 && t('create.read', { count: users.length, given })}
          {repeated.length > 0 && ` · ${t('create.repeated', { names: repeated.join(', ') })}`}
        </small>
      </div>
      <NativeSelect
        label={t('users.image')}
        data={[{ value: '', label: t('create.image.default') }, ...(tags?.tags ?? [])]}
        value={image}
        onChange={(event) => setImage(event.currentTarget.value)}
      />
      {names.length > 0 && (
        <MultiSelect
          label={t('users.groups')}
          data={names}
          value={groups}
          onChange={setGroups}
          searchable
          nothingFoundMessage={t('table.no.match')}
          comboboxProps={{ transitionProps: { duration: 100 } }}
        />
      )}
      {failure && <ErrorState title={t('create.failed')} failure={failure} />}
      <div className={dialog.buttons}>
        <Button onClick={onClose} disabled={working}>
          {t('preview.cancel')}
        </Button>
        <Button type="submit" variant="filled" disabled={users.length === 0 || tooMany || working}>
          {working ? t('preview.working') : t('create.submit', { count: users.length })}
        </Button>
      </div>
    </form>
  );
}
