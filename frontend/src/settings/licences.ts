/** What the program is made of, with the texts that it comes under: a file of the frontend, which is made from what is built in. */
export interface Licences {
  components: { name: string; version: string; license: string; texts: number[] }[];
  texts: string[];
}

export async function licences(): Promise<Licences> {
  const answer = await fetch('/licenses.json');
  if (!answer.ok) throw new Error(`licenses.json: ${answer.status}`);
  return (await answer.json()) as Licences;
}
