import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import { client } from '../state/state';
import '../strings/attachments';
import type { Attachment } from '../api/records';
import { answering } from '../test/calls';
import { session } from '../test/records';
import Attached from './Attached.svelte';
import { Chips } from './chips.svelte';
import Files from './Files.svelte';
import Given from './Given.svelte';
import Media from './Media.svelte';
import Shelf from './Shelf.svelte';
import View from './View.svelte';

// A name that reads like the name of a PDF.
const filename = 'invoice\u202efdp.sh';
const of: Attachment = { id: 'a1', filename, mimeType: 'text/plain', size: 3, path: `/work/${filename}` };
const agent = 'x';

afterEach(() => document.body.replaceChildren());

const places: [string, () => object][] = [
  ['that the agent gave', () => mount(Given, { target: document.body, props: { of, agent } })],
  ['that was sent', () => mount(Attached, { target: document.body, props: { items: [of], agent } })],
  [
    'that waits to be sent',
    () => {
      const client = { call: () => new Promise(() => undefined) } as never;
      const chips = new Chips({ id: 's1', attachments: [of] }, client);
      chips.addPaths([`/other/${filename}`]);
      chips.drop({ paths: [], files: [], directories: [filename] });
      return mount(Shelf, { target: document.body, props: { chips, agent, leave: () => undefined } });
    },
  ],
  [
    'of the whole conversation',
    () => {
      const items = [
        { entry: 'e1', seq: 1, at: '2026-11-21T14:00:00.000Z', direction: 'out', attachment: of },
      ];
      answering(client, () => ({ items }));
      return mount(Files, { target: document.body, props: { session: session(), close: () => undefined } });
    },
  ],
  [
    'that is shown large',
    () => mount(View, { target: document.body, props: { of, close: () => undefined } }),
  ],
  [
    'that is played',
    () => mount(Media, { target: document.body, props: { of, kind: 'audio', broken: () => undefined } }),
  ],
];

test.each(places)('the name of a file %s hides nothing', async (_place, show) => {
  vi.spyOn(client, 'blob').mockReturnValue(new Promise(() => undefined));
  const shown = show();
  await vi.waitFor(() => {
    flushSync();
    expect(document.body.textContent).toContain('invoice[U+202E]fdp.sh');
  });
  const read = [...document.body.querySelectorAll('*')].flatMap((one) =>
    [...one.attributes].map(({ value }) => value),
  );
  expect([document.body.textContent, ...read].filter((text) => text.includes('\u202e'))).toEqual([]);
  await unmount(shown);
});
