import { addTexts } from './texts';

// The texts of the defaults, the fonts and the editor in the settings.

export const preferences = {
  'settings.code': 'Code size',
  'settings.defaults': 'New conversations',
  'settings.defaults.about':
    'For a project without conversations. Elsewhere each choice is as it was last in the project.',
  'settings.defaults.agent': 'Agent',
  'settings.defaults.agent.gone': '{id}, which is not installed',
  'settings.defaults.agent.last': 'The one used last',
  'settings.defaults.worktree': 'In a worktree of its own, where the project is a git repository',
  'settings.editor': 'Editor',
  'settings.editor.about':
    'Opens files from the window. A program and its arguments, with quotes around those that have blanks; {file} and {line} stand for the file and its line, and without {file} the file comes last. Empty: the variable DESKHAND_EDITOR, VISUAL or EDITOR, or an editor that Deskhand knows.',
  'settings.editor.command': 'Command',
  'settings.editor.example': 'code --goto {file}:{line}',
  'settings.editor.runs': 'Runs, without a shell:',
  'settings.font.about': 'The name of a font on this computer. Empty: the built-in font.',
  'settings.font.builtin': 'Built in ({name})',
  'settings.font.code': 'Code font',
  'settings.font.sample': 'The quick brown fox: 0O 1lI {}',
  'settings.font.text': 'Text font',
  'settings.save': 'Save',
} as const;

addTexts(preferences);
