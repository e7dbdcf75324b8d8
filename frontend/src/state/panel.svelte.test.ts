import { beforeEach, expect, test } from 'vitest';
import { PanelState } from './panel.svelte';

beforeEach(() => localStorage.clear());

test('terminals that were moved to the bottom open there, and the side panel keeps its other tabs', () => {
  const panel = new PanelState();
  panel.open({ tab: 'terminal', terminal: 't1' });
  expect([panel.shown, panel.tab, panel.bottom.shown]).toEqual([true, 'terminal', false]);
  panel.moveTerminals();
  expect([panel.shown, panel.bottom.shown]).toEqual([false, true]);
  expect(panel.tabs).not.toContain('terminal');
  panel.open({ tab: 'changes', turn: 'turn-1' });
  panel.open({ tab: 'terminal', terminal: 't2' });
  expect([panel.tab, panel.ask, panel.bottom.ask]).toEqual([
    'changes',
    { tab: 'changes', turn: 'turn-1' },
    { tab: 'terminal', terminal: 't2' },
  ]);
  panel.toggle('terminal');
  expect([panel.shown, panel.bottom.shown]).toEqual([true, false]);
  // The next page remembers the place, and not that they were open.
  const next = new PanelState();
  expect([next.bottom.chosen, next.bottom.shown, next.tabs.includes('terminal')]).toEqual([
    true,
    false,
    false,
  ]);
  next.moveTerminals();
  expect([next.shown, next.tab, next.bottom.shown, next.tabs.includes('terminal')]).toEqual([
    true,
    'terminal',
    false,
    true,
  ]);
});

test('the terminals keep a height in which a line can be read', () => {
  const panel = new PanelState();
  panel.bottom.resize(3);
  expect(panel.bottom.height).toBe(120);
  panel.bottom.resize(301.4);
  expect([panel.bottom.height, new PanelState().bottom.height]).toEqual([301, 301]);
});
