// What names conversations and skills in a message, loaded with the first of them.
export { default as NamedList } from './NamedList.svelte';
export { conversationsFor, Skills } from './named';
