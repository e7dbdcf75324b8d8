import { lookupOf } from '../markdown/lookup';
import type { Places } from '../markdown/places';
import type { FileLink } from './linked';
import { linksIn } from './linkify';

// The files that an output names, found when the output is on the screen.

/** The largest number of files of an output that are looked up. */
const most = 200;

/** Finds the files that a text names. */
export async function filesIn(text: string, places: Places): Promise<FileLink[]> {
  const links = linksIn(text).slice(0, most);
  const paths = await Promise.all(links.map((link) => lookupOf(places).find(link)));
  return links.flatMap(({ start, end, line }, n) => {
    const file = paths[n];
    return file === undefined ? [] : [{ start, end, file, line }];
  });
}
