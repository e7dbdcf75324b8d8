package agents

import (
	"os"
	"path/filepath"
	"testing"
)

func TestGeminiCleanUpIsOff(t *testing.T) {
	t.Parallel()
	u := &CleanUp{Settings: ".gemini/settings.json", Setting: "general.sessionRetention.enabled", Home: "GEMINI_CLI_HOME"}
	home := t.TempDir()
	file := u.settings([]string{"HOME=/nowhere", "USERPROFILE=/nowhere", "GEMINI_CLI_HOME=" + home})
	if want := filepath.Join(home, ".gemini", "settings.json"); file != want {
		t.Fatalf("got the file %q, want %q", file, want)
	}
	if u.isOff(file) {
		t.Error("it is off without a file")
	}
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`{"general":{"sessionRetention":{"enabled":false}}}`: true,
		`{"general":{"sessionRetention":{"enabled":true}}}`:  false,
		`{"general":{"sessionRetention":{}}}`:                false,
		`{"general":{"sessionRetention":false}}`:             false,
		`{"general":3}`:                                      false,
		`{}`:                                                 false,
		`[`:                                                  false,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := u.isOff(file); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}
