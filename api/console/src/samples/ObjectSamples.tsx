import { Button, Menu } from '@mantine/core';
import type { ReactNode } from 'react';

import { CommandLine } from '../components/CommandLine';
import { CopyLine } from '../components/CopyLine';
import { DesiredObserved } from '../components/DesiredObserved';
import { DetailCard } from '../components/DetailCard';
import { FactList } from '../components/FactList';
import { ObjectHeader } from '../components/ObjectHeader';
import { ReasonedButton } from '../components/ReasonedButton';
import { Steps } from '../components/Steps';

/** Parts of an object's page. */
export function ObjectSamples(): ReactNode {
  return (
    <>
      <ObjectHeader
        crumbs={
          <>
            <a href="#object">Users</a> / bob
          </>
        }
        name="bob"
        state={{ tone: 'bad', label: 'state.failed' }}
        actions={
          <>
            <Button variant="filled">Retry now</Button>
            <Button>Restart</Button>
          </>
        }
        menu={<Menu.Item>Stop</Menu.Item>}
      />
      <div className="card">
        <DesiredObserved
          label="Desired and observed"
          rows={[
            {
              label: 'Image',
              desired: <code>agent:1.3</code>,
              observed: <code>agent:1.2</code>,
              differs: true,
            },
            { label: 'Running', desired: 'yes', observed: 'yes', differs: false },
            { label: 'Memory limit', desired: '2048 MB', observed: undefined, differs: false },
          ]}
        />
      </div>
      <div className="card">
        <Steps
          steps={[
            { text: 'Pull agent:1.3', state: 'done' },
            { text: 'Create the new container', state: 'now' },
            { text: 'Stop the old one (10 s grace)', state: 'next' },
            { text: 'Start, wait until healthy', state: 'failed' },
          ]}
        />
      </div>
      <DetailCard title="About" aside={<a href="#object">All events</a>}>
        <FactList
          facts={[
            ['Source', 'local'],
            ['Id', <code key="id">0f299494c7e14d6ead7080be103f1f49</code>],
            ['Nothing', undefined],
          ]}
        />
      </DetailCard>
      <div className="row">
        <ReasonedButton>Delete olga…</ReasonedButton>
        <ReasonedButton reason="You cannot delete your own account.">Delete admin…</ReasonedButton>
      </div>
      <CopyLine text="agentyard get containers --not-ready" />
      <CommandLine commands={['agentyard describe user/bob', 'agentyard retry container/bob']} />
    </>
  );
}
