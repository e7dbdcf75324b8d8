// What stands in a turn's footer of its changes, which is loaded with the first footer that has some.
import '../strings/changes';

export { default as Actions } from './Actions.svelte';
export { default as Summary } from './Summary.svelte';
