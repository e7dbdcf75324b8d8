import type { components } from './schema';

// Where agents run: this computer, and runtimes elsewhere.

type Schemas = components['schemas'];

/** Where agents run. */
export type Site = Schemas['Place'];
export type NewSite = Schemas['NewPlace'];
export type SitePatch = Schemas['PlacePatch'];
/** What became of one that was removed: agents that could not be ended may go on there. */
export type SiteRemoved = Schemas['PlaceRemoved'];
export type SiteAgent = Schemas['PlaceAgent'];
export type SiteDirectory = Schemas['FarDirectories'];

/** The id of this computer. */
export const here = 'local';
