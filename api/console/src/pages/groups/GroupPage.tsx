import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { groupMembersQuery, groupTreeQuery } from '../../api/queries/groups';
import { CommandLine } from '../../components/CommandLine';
import styles from '../../components/detail.module.css';
import { DetailCard } from '../../components/DetailCard';
import { EmptyState } from '../../components/EmptyState';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { ObjectHeader } from '../../components/ObjectHeader';
import { useT } from '../../i18n';
import { placeGroup } from '../../modules/group-tree';
import { plainWord } from '../../modules/plain-word';
import { visibleText } from '../../modules/visible-text';
import { GroupFacts } from './GroupFacts';
import { GroupMembers } from './GroupMembers';
import { GroupSkills } from './GroupSkills';
import { GroupTree } from './GroupTree';

const route = getRouteApi('/admin/groups/$name');

/** A group: its place in the tree, its members, the skills that it gives. */
export function GroupPage(): ReactNode {
  const t = useT();
  const { name } = route.useParams();
  const tree = useQuery(groupTreeQuery);
  const { data, error, refetch } = useQuery(groupMembersQuery(name, { page: 1, page_size: 1 }));
  const list = <Link to="/admin/groups">{t('section.groups')}</Link>;
  if (error && !data) {
    const failure = Failure.from(error);
    if (failure.status !== 404) return <ErrorState failure={failure} onRetry={() => void refetch()} />;
    return <EmptyState title={t('group.none', { name })} text={t('group.none.text')} action={list} />;
  }
  if (!data || !tree.data) return <LoadingState rows={6} />;
  const { group, above, below } = placeGroup(tree.data, name);
  const shown = visibleText(name);
  const word = plainWord(name);
  return (
    <>
      <ObjectHeader
        crumbs={
          <>
            {list}
            {above.map((one) => (
              <span key={one.name}>
                {' / '}
                <Link to="/admin/groups/$name" params={{ name: one.name }}>
                  {visibleText(one.name)}
                </Link>
              </span>
            ))}
            {` / ${shown}`}
          </>
        }
        name={shown}
      />
      <p className={styles.lead}>
        {t('group.sentence', {
          direct: group?.member_count ?? data.total,
          inherited: data.inherited_members.length,
          skills: data.skills.length,
        })}
      </p>
      <div className={styles.columns}>
        <div className="stack">
          <GroupMembers key={name} name={name} />
        </div>
        <div className="stack">
          {group && <GroupFacts group={group} />}
          <GroupSkills skills={data.skills} above={above.map((one) => one.name)} />
          {(above.length > 0 || below.length > 0) && (
            <DetailCard title={t('group.tree')}>
              <GroupTree name={name} above={above} below={below} />
            </DetailCard>
          )}
          <CommandLine
            commands={[
              `agentyard group members ${word}`,
              `agentyard group add ${word} USER`,
              `agentyard group move ${word} PARENT`,
              `agentyard skill bind SKILL --group ${word}`,
              `agentyard group delete ${word}`,
            ]}
          />
        </div>
      </div>
    </>
  );
}
