import type { components } from './schema';

// The places where agents run: this computer and remote runtimes.

type Schemas = components['schemas'];

/** A place where agents run. */
export type Site = Schemas['Place'];
export type NewSite = Schemas['NewPlace'];
export type SitePatch = Schemas['PlacePatch'];
/** The result of removing a place, with the agents that could not be ended and may go on there. */
export type SiteRemoved = Schemas['PlaceRemoved'];
export type SiteAgent = Schemas['PlaceAgent'];
export type SiteDirectory = Schemas['FarDirectories'];

/** The id of this computer. */
export const here = 'local';
