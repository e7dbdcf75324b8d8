import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commandIds, defaultKeys } from '../ui/keys';
import { commandGroups, nameOf } from './groups';

// The list of keys in the manual is generated from the keyboard map.

const file = join(import.meta.dirname, '../../../docs/manual/keyboard.md');
const begin = /(?<=<!-- made of the map:[^\n]*-->\n)[\s\S]*(?=<!-- end -->)/;

test('the manual has every command with its keys', () => {
  const all = commandGroups();
  const tables = all.map(({ title, commands }) => {
    const rows = commands.map((id) => {
      const keys = defaultKeys(id).map((chord) => `\`${chord.replace(/^Mod(?=.*\+Tab$)/, 'Ctrl')}\``);
      return `| ${nameOf(id)} | ${keys.join(', ')} | \`${id}\` |\n`;
    });
    return `### ${title}\n\n| command | keys | name in the file |\n|---|---|---|\n${rows.join('')}\n`;
  });
  expect(all.flatMap((group) => group.commands)).toHaveLength(commandIds.length);
  const page = readFileSync(file, 'utf8');
  const made = page.replace(begin, () => `\n${tables.join('')}`);
  if (process.env['UPDATE']) writeFileSync(file, made);
  else expect(page).toBe(made);
});
