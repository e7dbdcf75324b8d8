// What the side panel may be asked to show.

export const tabs = ['changes', 'files', 'terminal', 'plan', 'inspector'] as const;
export type PanelTab = (typeof tabs)[number];

export type PanelAsk =
  | { tab: 'changes'; turn?: string; path?: string }
  /** A file, or what a directory holds. */
  | { tab: 'files'; path?: string; line?: number; directory?: boolean | undefined }
  /** A program's terminal by its id, text that is too long for its row, or a new terminal in a directory. */
  | {
      tab: 'terminal';
      terminal?: string;
      output?: { title: string; text: string };
      fresh?: boolean;
      directory?: string;
    }
  | { tab: 'plan' }
  /** One process, by its pid, or what the agent wrote to its error output. */
  | { tab: 'inspector'; process?: number; stderr?: boolean };
