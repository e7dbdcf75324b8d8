package cli

import (
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"
)

type commands struct {
	Open     openCommand     `cmd:"" default:"withargs" help:"Open the app (default)."`
	Server   serverCommand   `cmd:"" help:"Serve the API, and the app to a browser, on this machine."`
	Prompt   promptCommand   `cmd:"" help:"Run one turn of an agent from the terminal."`
	Compare  compareCommand  `cmd:"" help:"Show comparisons of several agents, run their tests, and take one of them."`
	Agents   agentsCommand   `cmd:"" help:"List, install, update and remove agents."`
	Doctor   doctorCommand   `cmd:"" help:"Start agents for a test, and tell what was found and what to do."`
	Login    loginCommand    `cmd:"" help:"Sign in to an agent."`
	Logout   logoutCommand   `cmd:"" help:"Sign out of an agent, and forget the values that are kept for it."`
	Ps       psCommand       `cmd:"" help:"Show the agents that run, for whom, and what they take of the machine."`
	Sessions sessionsCommand `cmd:"" help:"List, show, search and export conversations."`
	Inbox    inboxCommand    `cmd:"" help:"List and answer what waits for a person."`
	Trust    trustCommand    `cmd:"" help:"Show, approve and revoke what a directory starts beside an agent."`
	Places   placesCommand   `cmd:"" help:"List, add, check and remove the runtimes on other machines that agents can run in."`
	Discord  discordCommand  `cmd:"" help:"Set up Discord, where the same conversations can be shown and spoken in, and bind channels to them."`
	Tail     tailCommand     `cmd:"" help:"Show what is said in a conversation, as it is said."`
	Data     dataCommand     `cmd:"" help:"Tell where the data is, and use another directory."`
	Verify   verifyCommand   `cmd:"" help:"Compare what is kept with its journal, and repair it."`
	Link     linkCommand     `cmd:"" help:"Print a fresh one-time link for a browser to the running server or app."`
	Tokens   tokensCommand   `cmd:"" help:"Make and revoke tokens for the API on this machine, and show who called."`
	Usage    usageCommand    `cmd:"" help:"Sum up what turns took in tokens, money and time."`
	Version  versionCommand  `cmd:"" help:"Print the version, and what the program was built from."`
	Licenses licensesCommand `cmd:"" help:"Print the licences of the program and of all that it is made of."`
	Agent    agentCommand    `cmd:"" help:"Be an agent that plays a recorded conversation."`
	ACP      acpCommand      `cmd:"" name:"acp" help:"Be an agent for an editor: its conversations are Deskhand's."`

	hiddenCommands
}

// hiddenCommands are the commands that Deskhand and agents start.
type hiddenCommands struct {
	DemoAgent demoCommand     `cmd:"" hidden:""`
	Watchdog  watchdogCommand `cmd:"" hidden:""`
	Environ   environCommand  `cmd:"" name:"environment" hidden:""`
	MCP       mcpCommand      `cmd:"" name:"mcp" hidden:""`
	OpenURL   openURLCommand  `cmd:"" name:"open-url" hidden:""`
}

// Run runs the command and returns its exit code.
func (p *Program) Run() int {
	// A write to a closed pipe must fail, and must not end this process by SIGPIPE: turns of other commands or of an editor may run here.
	// SIGPIPE is caught and not ignored, since child processes would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	var cmds commands
	exited := -1
	parser, err := kong.New(&cmds, kong.Name("deskhand"), kong.Description("The agent client that cannot lose your work."),
		kong.Writers(p.Stdout, p.Stderr), kong.Exit(func(code int) { exited = code }), kong.UsageOnError(), kong.Vars{"replay_faults": replayFaults()})
	if err != nil {
		return p.fail(err)
	}
	ctx, err := parser.Parse(p.Args)
	if exited >= 0 {
		return exited // kong has answered --help
	}
	if p.unread(err) {
		return exitUnread
	}
	if err != nil {
		parser.Errorf("%s", err)
		p.say("Run \"%s --help\" to see how it is used.\n", p.misused(err))
		return exitUsage
	}
	if err := ctx.Run(p); err != nil {
		return p.fail(err)
	}
	return exitOK
}

// misused names the command whose arguments are wrong, as far as the parser understood the command line.
func (p *Program) misused(err error) string {
	wrong, ok := errors.AsType[*kong.ParseError](err)
	if !ok || wrong.Context == nil || wrong.Context.Selected() == nil {
		return "deskhand"
	}
	command := wrong.Context.Selected()
	if command.Parent.DefaultCmd == command && !slices.Contains(p.Args, command.Name) {
		command = command.Parent // without a subcommand, the help of the parent applies
	}
	return command.FullPath()
}
