// The records of the client API under short names. Their shapes are generated from the backend's own, see package.json, schema.
import type { components } from './schema';

type Schemas = components['schemas'];

export type Workspace = Schemas['Workspace'];
export type Exit = Schemas['Exit'];
export type TurnError = Schemas['TurnError'];
export type Turn = Schemas['Turn'];
/** A prompt that waits; its id is that of the turn that it becomes. */
export type QueueItem = Schemas['QueueItem'];
export type QueuePatch = Schemas['QueuePatch'];
/** What has become of a prompt. */
export type Sent = Schemas['Sent'];
export type Usage = Schemas['Usage'];
export type ConfigChoice = Schemas['ConfigChoice'];
export type ConfigOption = Schemas['ConfigOption'];
export type ModeMark = Schemas['ModeMark'];
export type StartMode = Schemas['StartMode'];
export type StartChoice = Schemas['Choice'];
export type Command = Schemas['Command'];
export type Session = Schemas['Session'];
/** Where a conversation comes from, when it was not begun here from nothing. */
export type Origin = Schemas['Origin'];
/** A conversation that an agent keeps by itself. */
export type AgentSession = Schemas['AgentSession'];
export type AgentSessionPage = Schemas['AgentSessions'];
export type KnownWorkspace = Schemas['KnownWorkspace'];
/** What is kept, and what it takes of the disk. */
export type StorageState = Schemas['Storage'];
export type Verification = Schemas['Verification'];
export type Finding = Schemas['Finding'];
export type Phase = Session['phase'];
export type Location = Schemas['Location'];
export type ToolCall = Schemas['ToolCall'];
export type Straggler = Schemas['Straggler'];
export type Terminal = Schemas['Terminal'];
export type FileChange = Schemas['FileChange'];
export type ToolStatus = ToolCall['status'];
export type PlanItem = Schemas['PlanItem'];
export type Notice = Schemas['Notice'];
export type Divider = Schemas['Divider'];
export type Entry = Schemas['Entry'];
/** A file that travels with a message, or that an agent gave. */
export type Attachment = Schemas['Attachment'];
/** What was taken in, and what was not. */
export type AttachResult = Schemas['AttachResult'];
export type AttachProblem = Schemas['AttachProblem'];
/** A file of a conversation, and where it stands in it. */
export type SessionFile = Schemas['SessionFile'];
/** A path below the directory of a conversation. */
export type FoundPath = Schemas['FoundPath'];
export type EntryKind = Entry['kind'];
export type RequestOption = Schemas['RequestOption'];
export type RequestPart = Schemas['RequestPart'];
export type PartPage = Schemas['PartPage'];
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
export type AgentSize = NonNullable<Agent['size']>;
export type Installing = Schemas['Installing'];
/** What an event tells of an installation that runs. */
export type InstallProgress = Schemas['InstallProgress'];
export type Failure = Schemas['Failure'];
export type TestReport = Schemas['Report'];
export type AgentList = Schemas['AgentList'];
export type EntryPage = Schemas['Transcript'];
/** A page of what a search found, and a place in a conversation that it found. */
export type Found = Schemas['Found'];
export type Hit = Schemas['Hit'];
export type ExportFormat = 'md' | 'json' | 'recording';
export type Directory = Schemas['DirectoryList'];
/** What one held request answers. */
export type EventBatch = Schemas['Batch'];
export type NewSession = Schemas['New'];
export type SessionPatch = Schemas['Patch'];

export type LoginMethods = Schemas['LoginMethods'];
export type LoginMethod = Schemas['LoginMethod'];
export type LoginVar = Schemas['LoginVar'];
/** A login that runs, or how it ended. */
export type Login = Schemas['Login'];
export type TerminalOutput = Schemas['TerminalOutput'];
export type InstallPlan = Schemas['Plan'];
/** An entry of agents.json. */
export type AgentDefinition = Schemas['Definition'];
export type ProcessList = Schemas['ProcessList'];
export type AgentProcesses = Schemas['AgentProcesses'];
/** What runs because of us, as an event tells it. */
export type ProcessSum = Schemas['ProcessSummary'];
export type Settings = Schemas['Settings'];
export type SettingsPatch = Schemas['SettingsPatch'];

/** An answer that is remembered. */
export type Rule = Schemas['Rule'];
export type NewRule = Schemas['NewRule'];
export type RulePatch = Schemas['RulePatch'];
/** What an entry tells of an answer that nobody was asked for. */
export type RuleAnswer = Schemas['RuleAnswer'];
/** What may be remembered of an answer, and what is dangerous about it. */
export type RuleSuggestions = Schemas['RuleSuggestions'];
export type RuleSuggestion = Schemas['RuleSuggestion'];
/** What a rule would have decided of what was asked for before. */
export type Simulated = Schemas['Simulated'];

/** Something of a directory that starts programs, or reaches out, when an agent starts there. */
export type Executable = Schemas['Executable'];
/** Something of a directory that a person has approved. */
export type Approval = Schemas['Approval'];
/** The server hands entries on as they are: they are objects. */
export type McpServer = Schemas['MCPServer'] & { entry: Record<string, unknown> };
export type McpTest = Schemas['MCPTest'];
export type Skill = Schemas['Skill'];
export type SkillEntry = Schemas['SkillEntry'] & { entry: Record<string, unknown> };
/** What a directory has of one kind, and what of its file cannot be read. */
export interface Equipment<T> {
  items: T[];
  path: string;
  problem?: string;
}

export interface Page<T> {
  items: T[];
  next?: string;
}
