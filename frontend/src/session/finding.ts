// What looks for something in a conversation, loaded a moment after the page.
export { Find } from './find.svelte';
export { default as FindBar } from './FindBar.svelte';
