import type { SiteAgent } from '../api/places';
import { client } from '../state/state';
import { errorText } from '../ui/format';

/** The agents of a remote place, as its runtime lists them: installed agents first. */
export class FarAgents {
  list = $state.raw<readonly SiteAgent[] | undefined>();
  fault = $state('');
  #asked = '';

  async load(place: string): Promise<void> {
    this.#asked = place;
    this.list = undefined;
    this.fault = '';
    try {
      const list = await client.placeAgents(place);
      if (this.#asked === place) this.list = list.sort((a, b) => Number(b.installed) - Number(a.installed));
    } catch (thrown) {
      if (this.#asked === place) this.fault = errorText(thrown);
    }
  }
}
