import { isObject } from '../content/blocks';
import { textOf, withField, type Entry, type EntryFault } from './entry';

// Entries of skills: a source with a kind and a place.

export const sourceKinds = ['github', 'git', 'local'] as const;
type SourceKind = (typeof sourceKinds)[number];

export function sourcesOf(entry: Entry): Entry[] {
  const { sources } = entry;
  return Array.isArray(sources) ? sources.map((source: unknown) => (isObject(source) ? source : {})) : [];
}

export function kindOf(source: Entry): SourceKind {
  return sourceKinds.find((kind) => kind === source['type']) ?? 'local';
}

/** Returns a source in one line: owner/repo @ ref, directory. */
export function sourceLine(source: Entry): string {
  const ref = textOf(source, 'ref');
  const subpath = textOf(source, 'subpath');
  return `${textOf(source, 'source')}${ref ? ` @ ${ref}` : ''}${subpath ? `, ${subpath}` : ''}`;
}

export function withSource(entry: Entry, index: number, source: Entry): Entry {
  return withField(entry, 'sources', sourcesOf(entry).with(index, source));
}

export function skillFaults(entry: Entry): EntryFault[] {
  const { sources } = entry;
  if (!Array.isArray(sources) || sources.length === 0) return [{ path: 'sources', code: 'sources' }];
  return sources.flatMap((source: unknown, index): EntryFault[] => {
    const path = `sources[${index}]`;
    if (!isObject(source)) return [{ path, code: 'table' }];
    if (!sourceKinds.some((kind) => kind === source['type'])) return [{ path: `${path}.type`, code: 'kind' }];
    if (textOf(source, 'source').trim() === '') return [{ path: `${path}.source`, code: 'source' }];
    const { skills } = source;
    if (
      skills !== undefined &&
      skills !== null &&
      !(Array.isArray(skills) && skills.every((one) => typeof one === 'string'))
    )
      return [{ path: `${path}.skills`, code: 'list' }];
    return [];
  });
}

/** Returns a SKILL.md without its front matter, whose name and description are shown elsewhere. */
export function withoutFrontMatter(text: string): string {
  return text.replace(/^\ufeff?---\r?\n[\s\S]*?\r?\n---[ \t]*(?:\r?\n|$)/, '');
}
