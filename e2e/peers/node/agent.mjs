// An agent on the TypeScript SDK of the protocol. The first word of a prompt tells what it does; what it found it says.
import { Readable, Writable } from 'node:stream';
import { agent, methods, ndJsonStream } from '@agentclientprotocol/sdk';

const { client } = methods;
const turns = new Map();
let sessions = 0;

async function files(ctx, sessionId, cwd) {
  const path = `${cwd}/from-typescript.txt`;
  await ctx.request(client.fs.writeTextFile, { sessionId, path, content: 'one\ntwo\n' });
  const { content } = await ctx.request(client.fs.readTextFile, { sessionId, path, line: 2, limit: 1 });
  const missing = await ctx
    .request(client.fs.readTextFile, { sessionId, path: `${cwd}/missing` })
    .catch((error) => error.code);
  return JSON.stringify({ content, missing });
}

async function program(ctx, sessionId, say) {
  const terminal = await ctx.createTerminal({ sessionId, command: 'sh', args: ['-c', 'echo from a program; exit 4'] });
  await say({
    sessionUpdate: 'tool_call',
    toolCallId: 'run',
    title: 'Run',
    kind: 'execute',
    status: 'in_progress',
    content: [{ type: 'terminal', terminalId: terminal.id }],
  });
  const exit = await terminal.waitForExit();
  const { output, truncated } = await terminal.currentOutput();
  const killed = await ctx.createTerminal({ sessionId, command: 'sleep', args: ['1000'] });
  await killed.kill();
  const { signal } = await killed.waitForExit();
  await killed.release();
  await terminal.release();
  await say({ sessionUpdate: 'tool_call_update', toolCallId: 'run', status: 'completed' });
  return JSON.stringify({ output, truncated, exit: exit.exitCode, signal });
}

async function permission(ctx, sessionId) {
  const { outcome } = await ctx.request(client.session.requestPermission, {
    sessionId,
    toolCall: { toolCallId: 'ask', title: 'May I?', kind: 'edit', status: 'pending' },
    options: [
      { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
      { optionId: 'no', name: 'No', kind: 'reject_once' },
    ],
  });
  return JSON.stringify(outcome);
}

const cwds = new Map();

agent({ name: 'peer' })
  .onRequest(methods.agent.initialize, () => ({
    protocolVersion: 1,
    agentCapabilities: { sessionCapabilities: { additionalDirectories: {} } },
  }))
  .onRequest(methods.agent.session.new, ({ params }) => {
    const sessionId = `ts-${++sessions}`;
    cwds.set(sessionId, params.cwd);
    return { sessionId };
  })
  .onRequest(methods.agent.session.prompt, async ({ params, client: ctx }) => {
    const { sessionId } = params;
    const say = (update) => ctx.notify(client.session.update, { sessionId, update });
    const word = params.prompt[0].text.trim();
    let said = '';
    if (word === 'files') said = await files(ctx, sessionId, cwds.get(sessionId));
    else if (word === 'program') said = await program(ctx, sessionId, say);
    else if (word === 'permission') said = await permission(ctx, sessionId);
    else if (word === 'wait') {
      await new Promise((resolve) => turns.set(sessionId, resolve));
      return { stopReason: 'cancelled' };
    }
    await say({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: said } });
    return { stopReason: 'end_turn' };
  })
  .onNotification(methods.agent.session.cancel, ({ params }) => turns.get(params.sessionId)?.())
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
