import type { components } from './schema';

// Where agents run: this computer, and runtimes elsewhere.

type Schemas = components['schemas'];

/** Where agents run. */
export type Site = Schemas['Place'];
export type NewSite = Schemas['NewPlace'];
export type SitePatch = Schemas['PlacePatch'];
export type SiteAgent = Schemas['PlaceAgent'];
export type SiteDirectory = Schemas['FarDirectories'];

/** The id of this computer. */
export const here = 'local';
