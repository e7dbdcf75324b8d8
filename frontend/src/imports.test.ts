// @vitest-environment node
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const files = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.(ts|svelte)$/.test(file) && !/\.test\.|\.d\.ts$/.test(file))
  .map((file) => file.replaceAll('\\', '/'));

/** Returns the modules that a module imports: values and types, at its start and later. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(import.meta.dirname, file), 'utf8');
  const named = [...text.matchAll(/(?:\bfrom|\bimport|\bimport\()\s*'(\.[^']+)'/g)];
  return named.flatMap(([, name = '']) => {
    const path = join(dirname(file), name).replaceAll('\\', '/');
    return [path, `${path}.ts`].filter((one) => files.includes(one)).slice(0, 1);
  });
}

test('no module imports itself by way of others', () => {
  const imports = new Map(files.map((file) => [file, importsOf(file)]));
  const done = new Set<string>();
  const circles: string[] = [];
  const follow = (file: string, way: readonly string[]) => {
    if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(' > '));
    if (done.has(file) || way.includes(file)) return;
    for (const next of imports.get(file) ?? []) follow(next, [...way, file]);
    done.add(file);
  };
  for (const file of files) follow(file, []);
  expect([...imports.values()].flat().length).toBeGreaterThan(files.length);
  expect(circles).toEqual([]);
});
