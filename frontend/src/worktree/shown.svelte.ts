import { SvelteSet } from 'svelte/reactivity';

/** The sessions whose set-up and commands a person has asked for, by their ids. */
export const shown = new SvelteSet<string>();
