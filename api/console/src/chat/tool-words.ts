import type { MessageKey } from '../i18n';

/** Calls in words, by the name of the tool without the name of its server. */
const WORDS: Record<string, MessageKey> = {
  browser_get_content: 'chat.tool.read.page',
  browser_get_html: 'chat.tool.read.page',
  browser_get_links: 'chat.tool.read.page',
  browser_snapshot: 'chat.tool.read.page',
  browser_navigate: 'chat.tool.open.page',
  browser_tab_new: 'chat.tool.open.page',
  browser_click: 'chat.tool.click',
  browser_type: 'chat.tool.type',
  browser_screenshot: 'chat.tool.screenshot',
  browser_status: 'chat.tool.status',
  computer_screenshot: 'chat.tool.screenshot',
  computer_file_list: 'chat.tool.list',
  computer_file_read: 'chat.tool.read',
  computer_file_write: 'chat.tool.write',
  computer_file_edit: 'chat.tool.edit',
  computer_run_command: 'chat.tool.run',
  list_dir: 'chat.tool.list',
  read_file: 'chat.tool.read',
  write_file: 'chat.tool.write',
  append_file: 'chat.tool.write',
  edit_file: 'chat.tool.edit',
  exec: 'chat.tool.run',
  web_search: 'chat.tool.search',
  web_fetch: 'chat.tool.fetch',
  send_file: 'chat.tool.send',
};

/** A call in words; nothing for a tool that the console does not know. */
export function toolWords(name: string): MessageKey | undefined {
  const plain = name.replace(/^mcp_(?:browser|desktop|computer)_(?=browser_|computer_)/, '');
  return Object.hasOwn(WORDS, plain) ? WORDS[plain] : undefined;
}

/** Arguments of a call, indented where they are JSON. */
export function readableArguments(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text) as unknown, null, 2);
  } catch {
    return text;
  }
}

/** Returns true when a call has nothing to show. */
export function hasNoArguments(text: string): boolean {
  return ['', '{}', 'null'].includes(text.trim());
}
