// The lists of sessions and skills for mentions, loaded with the first of them.
export { default as NamedList } from './NamedList.svelte';
export { conversationsFor, Skills } from './named';
