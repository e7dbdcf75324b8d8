// The records of the client API, as backend/session/records.go writes them. All record types are in this file and nowhere else.

export type Phase = 'starting' | 'replaying' | 'ready' | 'working' | 'waiting' | 'cancelling' | 'closed';

export interface Workspace {
  id: string;
  path: string;
  /** The directory is not there now. */
  missing?: boolean;
}

export interface Exit {
  code?: number;
  signal?: string;
  stderrTail?: string;
  /** A stable code, when the agent could not be started. */
  problem?: string;
  params?: Record<string, string>;
  at: string;
}

export interface TurnError {
  code: number;
  message: string;
}

export interface Turn {
  id: string;
  session: string;
  state: 'running' | 'requires_action' | 'done';
  stopReason?: string;
  error?: TurnError;
  startedAt: string;
  endedAt?: string;
  usage?: unknown;
}

export interface Usage {
  used: number;
  size: number;
  cost?: { amount: number; currency: string };
}

export interface ConfigChoice {
  value: string;
  name: string;
  description?: string;
  group?: string;
}

export interface ConfigOption {
  id: string;
  name: string;
  description?: string;
  category?: string;
  /** select or boolean; others are shown but cannot be changed. */
  type: string;
  value?: string;
  checked?: boolean;
  choices?: ConfigChoice[];
}

export interface Command {
  name: string;
  description?: string;
  hint?: string;
}

export interface Session {
  id: string;
  title: string;
  labels: string[];
  pinned: boolean;
  place: string;
  workspace: Workspace;
  cwd: string;
  agent: string;
  agentName: string;
  acpSessionId?: string;
  protocolVersion?: number;
  generation: number;
  phase: Phase;
  step?: 'resolve' | 'spawn' | 'initialize' | 'session';
  turn?: Turn;
  waiting: number;
  configOptions: ConfigOption[];
  commands: Command[];
  usage?: Usage;
  exit?: Exit;
  unread: boolean;
  draft: string;
  createdAt: string;
  updatedAt: string;
  archivedAt?: string;
}

export interface Location {
  path: string;
  line?: number;
}

export type ToolStatus = 'pending' | 'in_progress' | 'completed' | 'failed' | 'cancelled';

export interface ToolCall {
  toolCallId: string;
  title: string;
  name?: string;
  kind: string;
  status: ToolStatus;
  content?: unknown[];
  locations?: Location[];
  rawInput?: unknown;
  rawOutput?: unknown;
  startedAt: string;
  endedAt?: string;
}

export interface PlanItem {
  content: string;
  priority?: string;
  status?: string;
}

export interface Notice {
  severity: string;
  title: string;
  description?: string;
}

export interface Divider {
  code: string;
  params?: Record<string, string>;
  exit?: Exit;
}

export type EntryKind =
  'user' | 'agent' | 'thought' | 'tool' | 'plan' | 'request' | 'notice' | 'divider' | 'raw';

export interface Entry {
  id: string;
  session: string;
  turn?: string;
  generation: number;
  seq: number;
  at: string;
  kind: EntryKind;
  text?: string;
  /** How many bytes of the text are left out here. */
  clipped?: number;
  blocks?: unknown[];
  tool?: ToolCall;
  plan?: PlanItem[];
  request?: string;
  notice?: Notice;
  divider?: Divider;
  raw?: unknown;
  reason?: string;
}

export interface RequestOption {
  id: string;
  name: string;
  kind: string;
}

export interface QuestionOption {
  id: string;
  label: string;
  description?: string;
}

export interface Question {
  prompt: string;
  options: QuestionOption[];
  multiSelect?: boolean;
  allowFreeText?: boolean;
}

export type RequestKind = 'permission' | 'form' | 'question' | 'raw';
export type RequestStatus = 'requested' | 'answered' | 'rejected' | 'cancelled' | 'expired';

export interface Request {
  id: string;
  session: string;
  turn?: string;
  generation: number;
  kind: RequestKind;
  agent: string;
  title: string;
  detail?: string;
  toolCallId?: string;
  tool?: ToolCall;
  options: RequestOption[];
  schema?: unknown;
  questions?: Question[];
  raw?: unknown;
  status: RequestStatus;
  answer?: unknown;
  answeredBy?: string;
  createdAt: string;
  resolvedAt?: string;
}

export interface Answer {
  optionId?: string;
  action?: 'accept' | 'decline' | 'cancel';
  content?: Record<string, unknown>;
  answers?: string[][];
  reject?: boolean;
}

export interface Append {
  id: string;
  field: string;
  text: string;
  /** The field's length before, in UTF-16 units. */
  offset: number;
}

export interface Event {
  seq: number;
  at: string;
  session?: string;
  type: string;
  data: unknown;
}

export interface Hello {
  api: number;
  version: string;
  gen: string;
  places: string[];
  features: string[];
  home: string;
}

export interface Agent {
  id: string;
  name: string;
  state: 'ready' | 'not_found' | 'broken';
  source: 'builtin' | 'custom' | 'path';
  /** The program that is started. */
  path?: string;
  /** Why it is not ready. */
  detail?: string;
  /** The directories that were searched for it. */
  searched?: string[];
}

export interface AgentList {
  items: Agent[];
  /** What is wrong with agents.json. */
  problem?: string;
}

export interface Page<T> {
  items: T[];
  next?: string;
}

export interface EntryPage {
  items: Entry[];
  /** The seq to pass as `before` for older entries. */
  next?: number;
  turns: Turn[];
  requests: Request[];
}

export interface Directory {
  path: string;
  parent?: string;
  items: { name: string; path: string }[];
}

/** What one held request answers. */
export interface EventBatch {
  gen: string;
  seq: number;
  events?: Event[];
  reset?: boolean;
}

export interface NewSession {
  agent: string;
  cwd: string;
  title?: string;
  labels?: string[];
}

export interface SessionPatch {
  title?: string;
  labels?: string[];
  pinned?: boolean;
  archived?: boolean;
  unread?: boolean;
  draft?: string;
}
