// Package api holds the rules of the runtime's HTTP API as transcripts: testdata/*.txtar, one rule a file. A file is named after its
// call and status, or what else the rule is about, and begins with the rule itself.
//
// A transcript has these parts:
//
//	agent         the script of the agents "fake" and "other"; see play
//	config        settings of the server, "name value" a line; see settings
//	agents.json   further agents; {"id":"fake"} and so on are there already
//	root/PATH     a file below $ROOT, the root
//	http          requests, separated by blank lines: "METHOD path", headers, a body
//	want          as many answers: the status, headers that must be there, the body
//
// A request may begin with "& ", then it is sent in the background, though not before a stream is connected, and its answer compared
// at the end; with "&& ", then nothing waits for the stream; with "N2 ", then two events are read of its stream; with "x10 ", then it
// is sent ten times and the last answer counts. The method WAIT is a GET that is repeated while it is 404. RESTART in place of a
// request puts another server in place of this one.
//
// In headers and bodies of want "..." stands for anything. A header without a value must be absent, in a request too. $(N*TEXT) is
// TEXT N times, $ROOT the root, $HOST the server's address, $ETAG the last ETag. A body raw "..." is a quoted Go string; one that
// begins with tar or targz is an archive: see archive.
package api

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"deskhand/backend/cli"
)

func TestMain(m *testing.M) {
	if script := os.Getenv(scriptVariable); script != "" {
		os.Exit(play(script))
	}
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") { // this binary is the program too, watchdog and demo agent included
		p := cli.Program{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Version: "test"}
		os.Exit(p.Run())
	}
	goleak.VerifyTestMain(m)
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			run(t, split(string(data)))
		})
	}
}

// split takes the parts of a txtar archive apart.
func split(archive string) map[string]string {
	parts := map[string]string{}
	name := ""
	for line := range strings.Lines(archive) {
		if marker, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(marker, " --\n") {
			name = strings.TrimSuffix(marker, " --\n")
			parts[name] = ""
			continue
		}
		parts[name] += line
	}
	return parts
}

// paragraphs are what blank lines separate.
func paragraphs(text string) []string {
	var all []string
	for p := range strings.SplitSeq(text, "\n\n") {
		if p = strings.Trim(p, "\n"); p != "" {
			all = append(all, p)
		}
	}
	return all
}

var repeated = regexp.MustCompile(`\$\((\d+)\*([^)]*)\)`)

// expand replaces the variables of a text.
func expand(text string, vars map[string]string) string {
	for name, value := range vars {
		text = strings.ReplaceAll(text, name, value)
	}
	return repeated.ReplaceAllStringFunc(text, func(s string) string {
		m := repeated.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[1])
		return strings.Repeat(m[2], n)
	})
}

// run sends the requests of a transcript and compares the answers.
func run(t *testing.T, parts map[string]string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"$ROOT": root}
	for name, text := range parts {
		if name, ok := strings.CutPrefix(name, "root/"); ok {
			write(t, filepath.Join(root, name), expand(text, vars))
		}
	}
	requests, wants := paragraphs(parts["http"]), paragraphs(parts["want"])
	if n := len(slices.DeleteFunc(slices.Clone(requests), func(r string) bool { return r == "RESTART" })); n != len(wants) {
		t.Fatalf("%d requests, %d answers", n, len(wants))
	}
	server := start(t, root, parts, vars)
	var later []func()
	for _, request := range requests {
		if request == "RESTART" {
			server.stop()
			server = start(t, root, parts, vars)
			continue
		}
		want := wants[0]
		wants = wants[1:]
		request = expand(request, vars)
		if how, rest, _ := strings.Cut(request, " "); how == "&" || how == "&&" {
			answered, started := make(chan answer, 1), make(chan struct{})
			go func() { answered <- server.send(t, rest, started) }()
			later = append(later, func() { (<-answered).compare(t, request, expand(want, vars)) })
			if how == "&" {
				<-started
			}
			continue
		}
		got := server.send(t, request, make(chan struct{}))
		if etag := got.header.Get("ETag"); etag != "" {
			vars["$ETAG"] = etag
		}
		got.compare(t, request, expand(want, vars))
	}
	for _, compare := range later {
		compare()
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
