import type Conversation from './Conversation.svelte';

// The part of the page that shows a conversation: transcript, Markdown, requests, composer. It is a file of its own, which main.ts asks for
// before anything is mounted, so that the frame around it is drawn without waiting for it.

class ConversationPart {
  /** The loaded component. It is kept here, because another import() would leave the pane blank for a frame each time. */
  component = $state.raw<typeof Conversation>();
  failed = $state.raw(false);
  #asked: Promise<void> | undefined;

  /** Loads the part once. After a failure the next call tries again. */
  load(): Promise<void> {
    return (this.#asked ??= import('./Conversation.svelte').then(
      ({ default: component }) => {
        this.component = component;
      },
      () => {
        this.failed = true;
        this.#asked = undefined;
      },
    ));
  }

  again(): void {
    this.failed = false;
    void this.load();
  }
}

export const conversationPart = new ConversationPart();
