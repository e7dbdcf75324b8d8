// The part of the page that is loaded with the first attachment.
import '../strings/attachments';

export { default as Attached } from './Attached.svelte';
export { chipsOf, leaveChips, type Chips } from './chips.svelte';
export { default as DropOverlay } from './DropOverlay.svelte';
export { default as Files } from './Files.svelte';
export { default as Given } from './Given.svelte';
export { fromPaste } from './limits';
export { PathSearch, type Within } from './mention.svelte';
export { default as MentionList } from './MentionList.svelte';
export { default as Shelf } from './Shelf.svelte';
