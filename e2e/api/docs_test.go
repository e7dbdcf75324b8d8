package api

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// What docs/api.md tells people to type works as it stands there. (The part about the SDK is tried where the SDK is.)
func TestDocumentedExamples(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)<!-- test: (sh|go) -->\n```[a-z]+\n(.*?)```\n")
	tried := 0
	for _, m := range block.FindAllStringSubmatch(string(page), -1) {
		tried++
		language, code := m[1], m[2]
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			base, _ := serve(t, root, "")
			cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", code)
			want := []string{`{"status":"ok"}`, `"sessionId":`, `"stopReason":"end_turn"`, `data: {`, `"bytesWritten":`, `"entryType":"file"`, `{"type":"local","command":"my-server","args":[]}`}
			if language == "go" {
				file := filepath.Join(root, "main.go")
				if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
					t.Fatal(err)
				}
				cmd = exec.CommandContext(t.Context(), "go", "run", file)
				want = []string{"The plan is done."}
			}
			cmd.Dir = root
			cmd.WaitDelay = 30 * time.Second // an example that fails leaves its stream open, and what the script started may hold the pipe
			cmd.Env = append(os.Environ(), "URL="+base, "TOKEN=the-token-of-these-tests")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("CombinedOutput: want no error, got error %v\nout %s", err, out)
			}
			for _, text := range want {
				if !strings.Contains(string(out), text) {
					t.Errorf("%q is missing in\n%s", text, out)
				}
			}
		})
	}
	if tried != 2 {
		t.Errorf("%d examples tried", tried)
	}
}
