// The records of the client API under short names. Their shapes are generated from the backend's own, see package.json, schema.
import type { components } from './schema';

type Schemas = components['schemas'];

export type Workspace = Schemas['Workspace'];
export type Exit = Schemas['Exit'];
export type TurnError = Schemas['TurnError'];
export type Turn = Schemas['Turn'];
export type Usage = Schemas['Usage'];
export type ConfigChoice = Schemas['ConfigChoice'];
export type ConfigOption = Schemas['ConfigOption'];
export type Command = Schemas['Command'];
export type Session = Schemas['Session'];
export type Phase = Session['phase'];
export type Location = Schemas['Location'];
export type ToolCall = Schemas['ToolCall'];
export type ToolStatus = ToolCall['status'];
export type PlanItem = Schemas['PlanItem'];
export type Notice = Schemas['Notice'];
export type Divider = Schemas['Divider'];
export type Entry = Schemas['Entry'];
export type EntryKind = Entry['kind'];
export type RequestOption = Schemas['RequestOption'];
export type QuestionOption = Schemas['QuestionOption'];
export type Question = Schemas['Question'];
export type Request = Schemas['Request'];
export type RequestKind = Request['kind'];
export type RequestStatus = Request['status'];
export type Answer = Schemas['Answer'];
export type Append = Schemas['Append'];
export type Event = Schemas['Event'];
export type Hello = Schemas['Hello'];
export type Agent = Schemas['Agent'];
export type Installing = Schemas['Installing'];
/** What an event tells of an installation that runs. */
export type InstallProgress = Schemas['InstallProgress'];
export type Failure = Schemas['Failure'];
export type TestReport = Schemas['Report'];
export type AgentList = Schemas['AgentList'];
export type EntryPage = Schemas['Transcript'];
export type Directory = Schemas['DirectoryList'];
/** What one held request answers. */
export type EventBatch = Schemas['Batch'];
export type NewSession = Schemas['New'];
export type SessionPatch = Schemas['Patch'];

export interface Page<T> {
  items: T[];
  next?: string;
}
