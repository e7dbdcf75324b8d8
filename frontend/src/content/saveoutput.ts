import type { Client } from '../api/client';
import { unlimited } from '../api/limit';
import { addressOf } from '../api/route';
import { saveFile } from '../shell/save';
import { saveExport, surface } from '../shell/wails';
import '../strings/output';
import { t } from '../strings/t';

const name = 'output.txt';

/** Saves a whole output as a file: the window asks for a path, a browser downloads the file. */
export async function saveOutput(
  client: Client,
  path: { id: string; entry: string },
  query: { at?: string },
): Promise<string | undefined> {
  const address = addressOf('GET /client/sessions/{id}/entries/{entry}/output/text', { path, query });
  if (surface() === 'window') return saveExport(t('output.save'), address);
  saveFile(name, await client.blob(address, unlimited()));
  return name;
}
