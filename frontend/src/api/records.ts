// Short names for the records of the client API. Their shapes are generated from the backend's OpenAPI document; see the script "schema" in
// package.json.
import type { components } from './schema';

type Schemas = components['schemas'];

export type Workspace = Schemas['Workspace'];
export type Exit = Schemas['Exit'];
export type Turn = Schemas['Turn'];
/** A prompt that waits in the queue. Its id becomes the id of its turn. */
export type QueueItem = Schemas['QueueItem'];
export type QueuePatch = Schemas['QueuePatch'];
/** The state of a prompt after it was sent. */
export type Sent = Schemas['Sent'];
export type ConfigOption = Schemas['ConfigOption'];
export type ModeMark = Schemas['ModeMark'];
export type StartMode = Schemas['StartMode'];
export type StartChoice = Schemas['Choice'];
export type Command = Schemas['Command'];
export type Session = Schemas['Session'];
/** A limit of the account that an agent works with. */
export type AccountLimit = Schemas['AccountLimit'];
/** What turns took, summed up. */
export type TallyReport = Schemas['TallyReport'];
export type TallyRow = Schemas['TallyRow'];
export type TurnSum = Schemas['TurnSum'];
export type SessionPage = Schemas['PageSession'];
/** The origin of a session that was imported, or that continues another session. */
export type Origin = Schemas['Origin'];
export type Subagent = Schemas['Subagent'];
export type EntrySubagent = Schemas['BegunSubagent'];
/** A session that an agent itself has stored. */
export type AgentSession = Schemas['AgentSession'];
export type KnownWorkspace = Schemas['KnownWorkspace'];
/** The stored data and its size on the disk. */
export type StorageState = Schemas['Storage'];
export type Verification = Schemas['Verification'];
export type Finding = Schemas['Finding'];
export type ToolCall = Schemas['ToolCall'];
export type Straggler = Schemas['Straggler'];
export type Terminal = Schemas['Terminal'];
export type FileChange = Schemas['FileChange'];
export type PlanItem = Schemas['PlanItem'];
export type Notice = Schemas['Notice'];
export type Divider = Schemas['Divider'];
export type Entry = Schemas['Entry'];
/** A file that travels with a message, or that an agent gave. */
export type Attachment = Schemas['Attachment'];
/** The files that were attached, and the problems of those that were not. */
export type AttachResult = Schemas['AttachResult'];
export type AttachProblem = Schemas['AttachProblem'];
/** A file of a session, with its position in the transcript. */
export type SessionFile = Schemas['SessionFile'];
/** A path below the directory of a session. */
export type FoundPath = Schemas['FoundPath'];
export type RequestOption = Schemas['RequestOption'];
export type RequestPart = Schemas['RequestPart'];
export type OutputPage = Schemas['OutputPage'];
export type OutputMatches = Schemas['OutputMatches'];
export type PartPage = Schemas['PartPage'];
export type Question = Schemas['Question'];
export type Request = Schemas['Request'];
export type Answer = Schemas['Answer'];
export type Append = Schemas['Append'];
export type Event = Schemas['Event'];
export type Hello = Schemas['Hello'];
export type Agent = Schemas['Agent'];
export type AgentSize = NonNullable<Agent['size']>;
export type Installing = Schemas['Installing'];
/** The progress of a running installation, as an event reports it. */
export type InstallProgress = Schemas['InstallProgress'];
export type Failure = Schemas['Failure'];
export type TestReport = Schemas['Report'];
export type AgentList = Schemas['AgentList'];
export type EntryPage = Schemas['Transcript'];
/** A page of search results, and a single result. */
export type Found = Schemas['Found'];
export type Hit = Schemas['Hit'];
export type ExportFormat = 'md' | 'json' | 'recording';
export type Directory = Schemas['DirectoryList'];
/** The answer of one held request. */
export type EventBatch = Schemas['Batch'];
export type NewSession = Schemas['New'];
export type SessionPatch = Schemas['Patch'];

export type LoginMethods = Schemas['LoginMethods'];
export type LoginMethod = Schemas['LoginMethod'];
export type LoginVar = Schemas['LoginVar'];
/** A login that runs or has ended. */
export type Login = Schemas['Login'];
export type InstallPlan = Schemas['Plan'];
/** An entry of agents.json. */
export type AgentDefinition = Schemas['Definition'];
export type ProcessList = Schemas['ProcessList'];
export type AgentProcesses = Schemas['AgentProcesses'];
/** The processes that Deskhand has started, as an event reports them. */
export type ProcessSum = Schemas['ProcessSummary'];
export type Settings = Schemas['Settings'];
export type SettingsPatch = Schemas['SettingsPatch'];

/** A remembered answer. */
export type Rule = Schemas['Rule'];
export type NewRule = Schemas['NewRule'];
export type RulePatch = Schemas['RulePatch'];
/** The rule behind an entry that was answered without asking a person. */
export type RuleAnswer = Schemas['RuleAnswer'];
/** The rules that a person may store with an answer, and the dangers of each. */
export type RuleSuggestions = Schemas['RuleSuggestions'];
export type RuleSuggestion = Schemas['RuleSuggestion'];
/** The answers that a rule would have given to earlier requests. */
export type Simulated = Schemas['Simulated'];

/** Something in a directory that starts programs, or connects somewhere, when an agent starts there. */
export type Executable = Schemas['Executable'];
/** A person's approval of one executable in one directory. */
export type Approval = Schemas['Approval'];
/** The server passes entries on without checking them: they are objects. */
export type McpServer = Schemas['MCPServer'] & { entry: Record<string, unknown> };
export type McpTest = Schemas['MCPTest'];
export type Skill = Schemas['Skill'];
export type SkillEntry = Schemas['SkillEntry'] & { entry: Record<string, unknown> };
/** What a person has every agent told in a directory. */
export type Instructions = Schemas['Instructions'];
/** The entries of one kind in a directory. problem says which part of the file cannot be read. */
export interface Equipment<T> {
  items: T[];
  path: string;
  problem?: string;
}

// The files of a session's directories.

export type TreeEntry = Schemas['TreeEntry'];
export type TreeListing = Schemas['TreeListing'];
export type TreePreview = Schemas['TreePreview'];

// The changes of a session's turns, and their undoing.

export type Changes = Schemas['Changes'];
export type ChangeStat = Schemas['ChangeStat'];
export type TurnChanges = Schemas['TurnChanges'];
export type ChangedTurn = Schemas['ChangedTurn'];
export type ChangedFile = Schemas['ChangedFile'];

/** What is not committed in the repository of a session, and where its branch stands. */
export type RepositoryStatus = Schemas['RepositoryStatus'];
export type UncommittedFile = Schemas['UncommittedFile'];
/** A file as it is in the last commit and on disk. */
export type FileVersions = Schemas['FileVersions'];
export type BaseStatus = Schemas['BaseStatus'];
export type MergeRequest = Schemas['MergeRequest'];
export type FileDiff = Schemas['FileDiff'];
export type Hunk = Schemas['Hunk'];
/** The last restoration, which can be undone. */
export type LastRestoration = Schemas['LastRestoration'];
/** The result of a restoration for each file. */
export type Restored = Schemas['Restored'];
export type RestoredFile = Schemas['RestoredFile'];

/** What a project says of a session's directory, and how its set-up goes. */
export type ProjectReport = Schemas['ProjectReport'];
/** The worktree that a session in a directory would get. */
export type WorktreePlan = Schemas['WorktreePlan'];
/** The branches and files that a removal keeps and deletes. */
export type WorktreeRemoval = Schemas['WorktreeRemoval'];
/** A person's terminal. */
export type Shell = Schemas['Shell'];

/** A message between Deskhand and an agent, or a note of Deskhand. */
export type Frame = Schemas['Frame'];
export type FramePage = Schemas['FramePage'];
export type Stderr = Schemas['Stderr'];
/** The settings that an agent got when its session was last opened. */
export type Given = Schemas['Given'];
/** A call of the API by another program or a browser. */
export type ApiCall = Schemas['Call'];

/** An API token that a person has made. */
export type Token = Schemas['Token'];
export type NewToken = Schemas['NewToken'];
/** A new token with its secret, which the server shows only once. */
export type MadeToken = Schemas['MadeToken'];
export type LocalApi = Schemas['LocalAPI'];

/** A maintenance job that runs or has ended. */
export type Work = Schemas['Work'];
export type StoragePart = Schemas['StoragePart'];

/** The bot, the people that the bot answers, and the bound channels. */
export type DiscordState = Schemas['DiscordState'];
export type DiscordBinding = Schemas['DiscordBinding'];
export type DiscordSetup = Schemas['DiscordSetup'];
/** A condition that must hold for the Discord surface to work, and whether it does. */
export type DiscordCheck = Schemas['DiscordCheck'];
export type DiscordServer = Schemas['DiscordServer'];
export type DiscordChannel = Schemas['DiscordChannel'];

/** A prompt that several agents were given, and what each member has made of the prompt. */
export type Comparison = Schemas['Comparison'];
export type ComparisonResults = Schemas['ComparisonResults'];
export type MemberResult = Schemas['MemberResult'];
/** An agent that is to be compared. */
export type NewMember = Schemas['NewMember'];
export type TestRun = Schemas['TestRun'];

/** The pull request of a session's branch, or how one would be made. */
export type PullRequestStatus = Schemas['PullRequestStatus'];
export type PullRequest = Schemas['PullRequest'];
export type FailedCheck = Schemas['FailedCheck'];
export type ReviewComment = Schemas['ReviewComment'];
