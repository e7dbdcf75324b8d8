import { Removals } from './listing.svelte';

// They outlive the screen that asked for them.
export const mcpRemovals = new Removals();
export const skillRemovals = new Removals();
