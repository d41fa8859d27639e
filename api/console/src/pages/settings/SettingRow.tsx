import { Table } from '@mantine/core';
import type { ReactNode } from 'react';

import { Copy } from '../../components/Copy';
import { useT } from '../../i18n';
import { settingCommand } from '../../modules/settings';
import { visibleText } from '../../modules/visible-text';
import type { ShownSetting } from './filter-settings';
import styles from './settings.module.css';
import { SettingValue } from './SettingValue';

/** A setting: its words, its value, and the command that changes it. */
export function SettingRow({ setting, isChosen }: { setting: ShownSetting; isChosen: boolean }): ReactNode {
  const t = useT();
  const { key, isDefault, isSecret, isForeign, value } = setting;
  const usual = setting.default;
  const namesDefault = usual !== '' && usual !== null && typeof usual !== 'object' && usual !== undefined;
  const command = settingCommand(setting);
  return (
    <Table.Tr id={key} tabIndex={-1} className={styles.row} data-chosen={isChosen || undefined}>
      <Table.Th scope="row" className={styles.words}>
        <span lang={isForeign ? 'en' : undefined}>{setting.title}</span> <code>{key}</code>
        <small lang={isForeign ? 'en' : undefined}>{setting.text}</small>
      </Table.Th>
      <Table.Td>
        <SettingValue value={value} isSecret={isSecret} />
        <small className={styles.mark} data-changed={!isDefault || undefined}>
          {isDefault && t('settings.default')}
          {!isDefault && !namesDefault && t('settings.changed')}
          {!isDefault &&
            namesDefault &&
            t('settings.changed.from', { value: visibleText(String(usual as string | number | boolean)) })}
        </small>
      </Table.Td>
      <Table.Td data-drop={2}>
        <div className={styles.command}>
          <code>{command}</code>
          <Copy text={command} />
        </div>
      </Table.Td>
    </Table.Tr>
  );
}
