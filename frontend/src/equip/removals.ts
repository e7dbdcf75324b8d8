import { Removals } from './listing.svelte';

// The removals outlive the screens.
export const mcpRemovals = new Removals();
export const skillRemovals = new Removals();
