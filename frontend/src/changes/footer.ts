// The actions in a turn's footer, loaded with the first footer that has changes.
import '../strings/changes';

export { default as Actions } from './Actions.svelte';
export { default as Summary } from './Summary.svelte';
