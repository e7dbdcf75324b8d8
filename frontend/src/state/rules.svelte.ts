import { SvelteMap } from 'svelte/reactivity';
import type { Client } from '../api/client';
import { asApiError } from '../api/errors';
import type { Rule } from '../api/records';
import { expired, sameRule } from './rule';
import { t } from '../strings/t';
import type { Toasts } from './toasts.svelte';
import type { WallClock } from './wallclock.svelte';

/** The rules of the person, the built-in ones too. */
export class Rules {
  readonly byId = new SvelteMap<string, Rule>();
  /** Whether byId has every rule. */
  loaded = $state(false);
  readonly #client: Client;
  readonly #toasts: Toasts;
  readonly #wallClock: WallClock;

  constructor(client: Client, toasts: Toasts, wallClock: WallClock) {
    this.#client = client;
    this.#toasts = toasts;
    this.#wallClock = wallClock;
  }

  async load(signal?: AbortSignal): Promise<void> {
    const rules = await this.#client.rules(signal);
    this.byId.clear();
    for (const rule of rules) this.put(rule);
    this.loaded = true;
  }

  put(rule: Rule): void {
    this.byId.set(rule.id, rule);
  }

  drop(id: string): void {
    this.byId.delete(id);
  }

  /** The rule of an id, unless the rule was removed or has expired. */
  active(id: string): Rule | undefined {
    const rule = this.byId.get(id);
    return rule && !expired(rule, this.#wallClock.now) ? rule : undefined;
  }

  /** Removes a rule and offers to add it again. Answers that the rule has given stay. */
  async remove(rule: Rule): Promise<void> {
    try {
      await this.#client.removeRule(rule.id);
    } catch (thrown) {
      if (asApiError(thrown).code !== 'not_found') {
        this.#toasts.fail(thrown);
        return;
      }
    }
    this.drop(rule.id);
    this.#toasts.show({
      text: t('rule.removed.toast', { text: rule.text }),
      tone: 'info',
      undo: () =>
        void this.#client
          .addRule(sameRule(rule))
          .then((again) => this.put(again))
          .catch((thrown: unknown) => this.#toasts.fail(thrown)),
    });
  }
}
