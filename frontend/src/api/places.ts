import type { components } from './schema';

// The places where agents run: this computer and remote runtimes.

type Schemas = components['schemas'];

/** A place where agents run. */
export type Site = Schemas['Place'];
export type NewSite = Schemas['NewPlace'];
export type SitePatch = Schemas['PlacePatch'];
export type SiteAgent = Schemas['PlaceAgent'];

/** The id of this computer. */
export const here = 'local';
