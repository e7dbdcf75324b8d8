//go:build e2e && unix

package peers

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"deskhand/backend/agenttest"
)

// TestOnTheSDK runs the SDK's own clients against the program: an editor that starts deskhand acp, and both clients of the protocol's
// transport.
func TestOnTheSDK(t *testing.T) {
	absolute(t, "node/node_modules/@agentclientprotocol/sdk")
	program := filepath.Join(t.TempDir(), "deskhand")
	build := exec.Command("go", "build", "-o", program, "../..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("CombinedOutput: want no error, got error %v\nout %s", err, out)
	}
	for _, file := range []string{"node/editor.test.mjs", "node/transport.test.mjs"} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			cmd := exec.Command(node(t), "--experimental-websocket", "--test", "--test-timeout=300000", absolute(t, file))
			cmd.Env = append(os.Environ(), "DESKHAND_BIN="+program, "DESKHAND_DEMO_AGENT="+agenttest.Program(t))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("CombinedOutput: want no error, got error %v\nout %s", err, out)
			}
		})
	}
}
