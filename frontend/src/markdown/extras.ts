import markedCjkFriendly from 'marked-cjk-friendly';

// What reads more of a text than its first page needs: see late.ts.

export { fileFence } from './fences';
export * from './formula';
export { candidates, linkRef } from './paths';
export { fittedTable } from './table';

/** Emphasis beside the punctuation of Chinese, Japanese and Korean. */
export const { emStrong, del } = markedCjkFriendly().tokenizer ?? {};
