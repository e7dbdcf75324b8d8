import type Conversation from '../Conversation.svelte';

/** The functions that commands need from App.svelte. */
export interface Frame {
  /** The active session's component. */
  conversation: () => Conversation | undefined;
  sidebar: () => void;
  region: (step: 1 | -1) => void;
}
