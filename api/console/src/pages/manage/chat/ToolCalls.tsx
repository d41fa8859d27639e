import IconTool from '@tabler/icons-react/icons/IconTool';
import type { ReactNode } from 'react';

import type { ToolCall } from '../../../chat/protocol';
import { hasNoArguments, readableArguments, toolWords } from '../../../chat/tool-words';
import { useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import styles from './chat.module.css';
import { Folded } from './Folded';

/** Tool calls of the agent, each folded into a line. */
export function ToolCalls({ calls }: { calls: ToolCall[] }): ReactNode {
  return calls.map((call, at) => <OneCall key={at} call={call} />);
}

function OneCall({ call }: { call: ToolCall }): ReactNode {
  const t = useT();
  const words = toolWords(call.name);
  const name = visibleText(call.name);
  const explanation = call.explanation?.trim() ?? '';
  return (
    <Folded
      icon={<IconTool size={15} aria-hidden />}
      title={
        words ? (
          t(words)
        ) : (
          <>
            <code>{name}</code>
            {explanation !== '' && ` ${explanation}`}
          </>
        )
      }
    >
      {() => (
        <>
          {words && (
            <div>
              <code>{name}</code>
            </div>
          )}
          {explanation !== '' && <p className={styles.explanation}>{explanation}</p>}
          {hasNoArguments(call.arguments) ? (
            <small>{t('chat.tool.nothing')}</small>
          ) : (
            <pre className={styles.arguments} dir="ltr">
              {readableArguments(call.arguments)}
            </pre>
          )}
          {call.cut && <small>{t('chat.tool.cut')}</small>}
        </>
      )}
    </Folded>
  );
}
