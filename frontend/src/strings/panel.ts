import { addTexts } from './texts';

// The texts of the side panel's frame.

export const panel = {
  'error.editor.failed': '{name} could not be opened.',
  'error.editor.gone': '{name} is no longer there.',
  'error.editor.missing': 'The editor of the settings, {name}, was not found.',
  'error.editor.outside': '{name} is outside the directories of this conversation.',
  'error.editor.program':
    'No editor was found, and {name} could be a program, so it is not opened from here. Name your editor in the settings.',
  'error.editor.script':
    'The editor that was found is started by a script of Windows, which would take a sign in the path of {name} for a command. Name the program of your editor (.exe) in the settings.',

  'panel.bottom': 'Terminals',
  'panel.bottom.failed':
    'This part of the page could not be loaded. Hide the terminals, and show them again.',
  'panel.bottom.resize': 'Height of the terminals',
  'panel.changes': 'Changes',
  'panel.larger': 'Make the side panel larger',
  'panel.smaller': 'Make the side panel smaller',
  'panel.close': 'Close the side panel',
  'panel.failed': 'This part of the page could not be loaded. Choose the tab again.',
  'panel.files': 'Files',
  'panel.inspector': 'Inspector',
  'panel.label': 'Side panel',
  'panel.plan': 'Plan & context',
  'panel.resize': 'Width of the side panel',
  'panel.terminal': 'Terminal',
} as const;

addTexts(panel);
