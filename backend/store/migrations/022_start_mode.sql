-- The mode and the model in which new conversations begin, as a person has chosen them: for an agent in one directory, or in all where
-- directory is ''. An empty mode or model is one that nobody has chosen.
CREATE TABLE start_mode (
  agent     TEXT NOT NULL,
  place     TEXT NOT NULL,
  directory TEXT NOT NULL,
  mode      TEXT NOT NULL,
  model     TEXT NOT NULL,
  PRIMARY KEY (agent, place, directory)
) STRICT, WITHOUT ROWID;

-- The modes and the models that an agent offered when a conversation last began, so that they can be chosen before the next one.
CREATE TABLE start_offer (
  agent    TEXT NOT NULL,
  place   TEXT NOT NULL,
  version TEXT NOT NULL, -- of the agent; '' where nobody knows
  offer   TEXT NOT NULL, -- startmode.Offer as JSON
  noted_at INTEGER NOT NULL, -- Unix milliseconds
  PRIMARY KEY (agent, place)
) STRICT, WITHOUT ROWID;
