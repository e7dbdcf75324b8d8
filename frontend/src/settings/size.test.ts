import { expect, test } from 'vitest';
import type { InstallPlan } from '../api/records';
import { bigFrom, decide, planText, sizeText, type Decision } from './size';

const mib = 1024 * 1024;
const plan = (part: Partial<InstallPlan> = {}): InstallPlan => ({
  version: '1.0.0',
  packages: 3,
  freeBytes: 9000 * mib,
  enough: true,
  ...part,
});

test.each<[Partial<InstallPlan>, Decision]>([
  [{ unpacked: 40 * mib }, 'go'],
  [{ unpacked: bigFrom }, 'go'],
  [{ unpacked: bigFrom + 1 }, 'ask'],
  [{ download: 300 * mib }, 'ask'],
  [{ download: 300 * mib, unpacked: 10 * mib }, 'go'],
  [{}, 'go'],
  [{ unpacked: 40 * mib, enough: false }, 'refuse'],
  [{ unpacked: 900 * mib, enough: false }, 'refuse'],
])('%j: %s', (part, decision) => {
  expect(decide(plan(part))).toBe(decision);
});

test('what is known of the size is said, and no more', () => {
  expect(sizeText({ download: 80 * mib, unpacked: 314 * mib })).toBe('80.0 MB to download, 314.0 MB on disk');
  expect(sizeText({ unpacked: 1100 * mib })).toBe('1.1 GB on disk');
  expect(sizeText({ download: 80 * mib })).toBe('80.0 MB to download');
  expect(sizeText({})).toBe('');
  expect(sizeText(undefined)).toBe('');
});

test('the question and the refusal name what is needed and what is free', () => {
  expect(planText(plan({ unpacked: 314 * mib }), 'Claude Code')).toBe(
    'Claude Code 1.0.0 is large: 314.0 MB on disk. 8.8 GB are free.',
  );
  expect(planText(plan({ unpacked: 314 * mib, freeBytes: 0 }), 'Claude Code')).toBe(
    'Claude Code 1.0.0 is large: 314.0 MB on disk.',
  );
  expect(planText(plan({ unpacked: 314 * mib, freeBytes: 20 * mib, enough: false }), 'Codex')).toBe(
    'There is no room for Codex 1.0.0: it takes 314.0 MB, and 20.0 MB are free. Free some, then try again.',
  );
});
