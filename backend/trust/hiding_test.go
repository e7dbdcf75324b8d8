package trust_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/trust"
)

// A program is found in any spelling and any place: one parser may take text for a comment, or for data, that another runs.
func TestNothingHidesByHowItIsWritten(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]tree{
		"a comment that ends for some":    {"opencode.json": "{ // x\r \"plugin\": [\"./evil.js\"] // y\n}"},
		"a comment within a comment":      {".gemini/settings.json": "{ // \r /* \n \"mcpServers\": {\"a\":{\"command\":\"evil\"}} // */ \n}"},
		"a member that stands twice":      {"crush.json": `{"mcp":{"a":{"command":"evil"}},"mcp":{}}`},
		"hooks twice":                     {".claude/settings.json": `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"evil"}]}]},"hooks":{}}`},
		"an empty list beside a command":  {".cursor/hooks.json": `{"hooks":{"stop":[{"command":"./evil.sh","hooks":[]}]}}`},
		"the same of another agent":       {".kiro/agents/x.json": `{"hooks":{"agentSpawn":[{"command":"evil","hooks":[]}]}}`},
		"a skill called as packages are":  {".claude/skills/node_modules/SKILL.md": "---\nname: x\nhooks:\n  Stop: []\n---\n!`evil`\n"},
		"an extension called so":          {".gemini/extensions/node_modules/gemini-extension.json": `{"mcpServers":{"x":{"command":"evil"}}}`},
		"line ends of old":                {".claude/agents/a.md": "---\rname: x\rhooks: {}\r---\r"},
		"front matter in one line":        {".claude/agents/a.md": "---\n{\"hooks\": {\"Stop\": []}}\n---\n"},
		"a key that is asked for":         {".claude/agents/a.md": "---\nname: x\n? hooks\n: {Stop: [{hooks: [{type: command, command: evil}]}]}\n---\n"},
		"a key with an escape":            {".claude/agents/a.md": "---\nname: x\n\"h\\u006foks\": {Stop: []}\n---\n"},
		"a key with a tag":                {".claude/agents/a.md": "---\nname: x\n!!str hooks: {}\n---\n"},
		"a key with an anchor":            {".claude/agents/a.md": "---\nname: x\n&a hooks: {}\n---\n"},
		"a blank line before":             {".claude/agents/a.md": "\n---\nname: x\nhooks: {}\n---\n"},
		"letters of another case":         {".claude/agents/A.MD": "---\nhooks: {}\n---\n"},
		"a command with an escape":        {".gemini/commands/x.toml": "prompt = \"\\u0021{evil}\"\n"},
		"commands in a folder of skills":  {".gemini/commands/skills/a/x.toml": "prompt = \"!{evil}\"\n"},
		"an extension that names skills":  {".gemini/extensions/myskills/commands/x.toml": "prompt = \"!{evil}\"\n"},
		"a folder that is data elsewhere": {"shared/x.toml": "prompt = \"!{evil}\"\n", ".gemini/a/skills/s": "→../../../shared", ".gemini/commands": "→../shared"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := trust.Find(t.Context(), trust.Where{Directory: project(t, files), Reads: reads(t, "nobody-knows")})
			if len(found) == 0 {
				t.Error("nothing is found")
			}
		})
	}
}

// A script in the arguments is a part of the approval, and its change asks again.
func TestScriptsInArgumentsCount(t *testing.T) {
	t.Parallel()
	files := tree{".gemini/settings.json": `{"mcpServers":{"x":{"command":"sh","args":["tools/run.txt"]}}}`, "tools/run.txt": "echo hi"}
	found := trust.Find(t.Context(), trust.Where{Directory: project(t, files), Reads: reads(t, "nobody-knows")})
	if len(found) != 2 || found[1].Kind != trust.Script {
		t.Errorf("Find: got %+v, want the settings and the script", found)
	}
}

// A repository ends where git sees one. A .git that git ignores, or whose files lie elsewhere, hides no file above.
func TestBrokenRepositoryHidesNothingAboveIt(t *testing.T) {
	t.Parallel()
	hook := `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"evil"}]}]}}`
	with := func(name, text string) tree {
		files := repository("sub")
		files[name] = text
		return files
	}
	linked := tree{
		"sub/.git": "gitdir: ../.git/worktrees/sub\n", ".git/worktrees/sub/HEAD": "ref: refs/heads/sub\n", ".git/worktrees/sub/commondir": "../..\n",
	}
	for name, c := range map[string]struct {
		files tree
		hides bool
	}{
		"a repository":                {repository("sub"), true},
		"a linked worktree":           {linked, true},
		"an empty file":               {tree{"sub/.git": ""}, false},
		"a file that leads nowhere":   {tree{"sub/.git": "gitdir: ../.git/worktrees/none\n"}, false},
		"a file with other text":      {tree{"sub/.git": "hello\n"}, false},
		"an empty folder":             {tree{"sub/.git/x": ""}, false},
		"a folder with HEAD alone":    {tree{"sub/.git/HEAD": "ref: refs/heads/main\n"}, false},
		"a HEAD that is none":         {with("sub/.git/HEAD", "garbage\n"), false},
		"an empty HEAD":               {with("sub/.git/HEAD", ""), false},
		"files that lie elsewhere":    {with("sub/.git/config", "[core]\n\tworktree = ../..\n"), false},
		"a bare one":                  {with("sub/.git/config", "[core]\n\tbare = true\n"), false},
		"a version that is not known": {with("sub/.git/config", "[core]\n\trepositoryformatversion = 99\n"), false},
		"a broken configuration":      {with("sub/.git/config", "[core\n"), false},
	} {
		c.files[".claude/settings.json"] = hook
		found := trust.Find(t.Context(), trust.Where{Directory: filepath.Join(project(t, c.files), "sub"), Reads: reads(t, "nobody-knows")})
		got := !slices.ContainsFunc(found, func(f trust.Found) bool { return strings.HasPrefix(f.Name, "../.claude/settings.json") })
		if got != c.hides {
			t.Errorf("%s at sub/.git hides .claude above: got %v, want %v", name, got, c.hides)
		}
	}
}
