// Requests to the side panel: a tab, and the thing to show in the tab.

export const tabs = ['changes', 'files', 'terminal', 'plan', 'inspector'] as const;
export type PanelTab = (typeof tabs)[number];

export type PanelAsk =
  | { tab: 'changes'; turn?: string; path?: string; since?: 'start' | 'uncommitted' | 'base' }
  /** A file or a directory. */
  | { tab: 'files'; path?: string; line?: number; directory?: boolean | undefined }
  /** A terminal by its id, a text that is too long for its row, or a new terminal in a directory. */
  | {
      tab: 'terminal';
      terminal?: string;
      output?: { title: string; text: string };
      fresh?: boolean;
      directory?: string;
    }
  | { tab: 'plan' }
  /** A process by its pid, or the agent's error output. */
  | { tab: 'inspector'; process?: number; stderr?: boolean };
