import { Button, Menu } from '@mantine/core';
import type { ReactNode } from 'react';

import { CommandLine } from '../components/CommandLine';
import { DesiredObserved } from '../components/DesiredObserved';
import { ObjectHeader } from '../components/ObjectHeader';
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
      <CommandLine commands={['agentyard describe user/bob', 'agentyard retry container/bob']} />
    </>
  );
}
