// The search within a session, loaded shortly after the page.
export { Find } from './find.svelte';
export { default as FindBar } from './FindBar.svelte';
