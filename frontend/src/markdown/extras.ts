import markedCjkFriendly from 'marked-cjk-friendly';

// The part of the parser that few texts need; see late.ts.

export { fileFence } from './fences';
export * from './formula';
export { foldAt, Notes } from './notes';
export { candidates, linkRef } from './paths';
export { fittedTable } from './table';

/** Emphasis beside the punctuation of Chinese, Japanese and Korean. */
export const { emStrong, del } = markedCjkFriendly().tokenizer ?? {};
