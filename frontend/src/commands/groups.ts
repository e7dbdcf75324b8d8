import '../strings/keyboard';
import { t } from '../strings/t';
import type { CommandId } from '../ui/keys';

// The commands by topic, as Help, the settings and the manual show them.

const groups = {
  window: [
    'palette',
    'quickOpen',
    'help',
    'settings',
    'keyboard',
    'sidebar',
    'nextRegion',
    'previousRegion',
    'undo',
  ],
  find: [
    'new',
    'newIn',
    'inbox',
    'search',
    'find',
    'recent',
    'recentBack',
    'nth1',
    'nth2',
    'nth3',
    'nth4',
    'nth5',
    'nth6',
    'nth7',
    'nth8',
    'nth9',
    'import',
  ],
  write: ['send', 'sendOther', 'newline', 'recall', 'stash', 'attach', 'mode', 'model', 'effort', 'stop'],
  read: ['band', 'previousPrompt', 'nextPrompt', 'tail', 'undoTurn'],
  beside: [
    'panel',
    'changes',
    'files',
    'terminal',
    'plan',
    'inspector',
    'newTerminal',
    'split',
    'paneLeft',
    'paneRight',
    'paneUp',
    'paneDown',
    'closePane',
  ],
  agents: ['doctor', 'restart', 'agents', 'mcp', 'skills'],
  conversation: [
    'pin',
    'unread',
    'archive',
    'delete',
    'fork',
    'relink',
    'attached',
    'copyId',
    'exportMd',
    'exportJson',
    'exportRecording',
  ],
} as const satisfies Record<string, readonly CommandId[]>;

type GroupId = keyof typeof groups;

interface Group {
  id: GroupId;
  title: string;
  commands: readonly CommandId[];
}

export function commandGroups(): Group[] {
  return (Object.keys(groups) as GroupId[]).map((id) => ({
    id,
    title: t(`keyboard.group.${id}`),
    commands: groups[id],
  }));
}

export function nameOf(id: CommandId): string {
  const nth = /^nth(\d)$/.exec(id)?.[1];
  return nth ? t('command.nth', { n: nth }) : t(`command.${id as Exclude<CommandId, `nth${number}`>}`);
}

/** Keys with a fixed meaning in one part of the page. They cannot be changed. */
export const placeKeys = [
  { place: 'message', keys: ['Esc Esc', '@', '/'] },
  { place: 'inbox', keys: ['J K', 'A', 'R', '1…9', 'M', 'N'] },
  { place: 'changes', keys: ['[ ]', 'Y', 'N', 'C', 'O', 'Shift+Y', 'Shift+N'] },
  { place: 'queue', keys: ['Alt+Up Alt+Down', 'Delete'] },
  { place: 'sidebar', keys: ['Enter', 'F2', 'Delete', 'Shift+Delete', 'Shift+F10'] },
  { place: 'terminal', keys: ['Mod+K', 'Mod+Escape'] },
] as const;
