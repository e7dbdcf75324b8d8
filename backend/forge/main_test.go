package forge_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// Under the name of gh, glab or ssh, the test program is a stand-in for that program.
func TestMain(m *testing.M) {
	switch name := filepath.Base(os.Args[0]); name {
	case "gh", "glab", "ssh":
		os.Exit(standIn(name, os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// The variable that names the directory of a stand-in: its answers and its notes.
const standInDir = "FORGE_STAND_IN"

// reply is an answer of a stand-in.
type reply struct {
	Status int               `json:"status"` // 0 = none: the program fails before it reaches the forge
	Header map[string]string `json:"header"`
	Body   any               `json:"body"`
	Stderr string            `json:"stderr"`
	Exit   int               `json:"exit"`
	Raw    string            `json:"raw"` // printed instead of an answer
}

// note is what a stand-in has noted of a call.
type note struct {
	Program string
	Args    []string
	Dir     string
	Listing []string // of Dir
	In      string
	Env     []string
}

func (n note) key() string {
	method := ""
	if i := slices.Index(n.Args, "--method"); i >= 0 {
		method = n.Args[i+1]
	}
	path, _, _ := strings.Cut(n.Args[len(n.Args)-1], "?")
	return n.Program + " " + method + " " + path
}

// standIn answers from answers.json, a list of replies for each call, of which the last is repeated, and appends to notes.jsonl.
func standIn(program string, args []string) int {
	dir := os.Getenv(standInDir)
	n := note{Program: program, Args: args, Env: os.Environ()}
	n.Dir, _ = os.Getwd()
	entries, _ := os.ReadDir(n.Dir)
	for _, e := range entries {
		n.Listing = append(n.Listing, e.Name())
	}
	if slices.Contains(args, "--input") {
		in, _ := io.ReadAll(os.Stdin)
		n.In = string(in)
	}
	before := 0
	for _, o := range notes(dir) {
		if o.key() == n.key() {
			before++
		}
	}
	line, _ := json.Marshal(n)
	f, err := os.OpenFile(filepath.Join(dir, "notes.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 99
	}
	_, _ = f.Write(append(line, '\n'))
	_ = f.Close()
	if program == "ssh" {
		fmt.Println("user git\nhostname GitHub.com\nport 22")
		return 0
	}
	var all map[string][]reply
	data, _ := os.ReadFile(filepath.Join(dir, "answers.json"))
	if err := json.Unmarshal(data, &all); err != nil {
		return 98
	}
	replies := all[n.key()]
	if len(replies) == 0 {
		replies = []reply{{Status: 404, Body: map[string]any{"message": "no answer to " + n.key()}}}
	}
	return replies[min(before, len(replies)-1)].print()
}

func (r reply) print() int {
	fmt.Fprint(os.Stderr, r.Stderr)
	if r.Status == 0 {
		fmt.Print(r.Raw)
		return max(r.Exit, 1)
	}
	fmt.Printf("HTTP/2.0 %d Some Text\n", r.Status)
	var names []string
	for name := range r.Header {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Printf("%s: %s\r\n", name, r.Header[name])
	}
	fmt.Print("\r\n")
	body, _ := json.Marshal(r.Body)
	_, _ = os.Stdout.Write(body)
	if r.Status > 299 {
		fmt.Fprintf(os.Stderr, "gh: HTTP %d\n", r.Status)
		return 1
	}
	return 0
}

func notes(dir string) (list []note) {
	data, _ := os.ReadFile(filepath.Join(dir, "notes.jsonl"))
	for line := range strings.Lines(string(data)) {
		var n note
		if json.Unmarshal([]byte(line), &n) == nil {
			list = append(list, n)
		}
	}
	return list
}
