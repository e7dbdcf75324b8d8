/** The components of the program with their licences. The build generates the file. */
export interface Licences {
  components: { name: string; version: string; license: string; texts: number[] }[];
  texts: string[];
}

export async function licences(): Promise<Licences> {
  const answer = await fetch('/licenses.json');
  if (!answer.ok) throw new Error(`licenses.json: ${answer.status}`);
  return (await answer.json()) as Licences;
}
