package httpapi_test

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"deskhand/backend/launch"
)

func TestApprovalsOverTheAPI(t *testing.T) {
	c, work := openConfig(t)
	if err := os.Mkdir(filepath.Join(work, ".git"), 0o700); err != nil { // so that no parent counts
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, ".mcp.json"), []byte(`{"mcpServers":{"a":{"command":"npx"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	in := "?directory=" + url.QueryEscape(work)
	var there struct{ Items []launch.Executable }
	c.call("GET", "trust"+in, "", 200, &there)
	if len(there.Items) != 1 || there.Items[0].Kind != "agent_config" || there.Items[0].Approved {
		t.Fatalf("trust: got %+v, want one agent_config, not approved", there)
	}
	var list struct{ Items []launch.Approval }
	c.call("GET", "trust/approvals", "", 200, &list)
	if list.Items == nil || len(list.Items) != 0 {
		t.Errorf("approvals: got %+v, want an empty list", list)
	}
	wish, err := json.Marshal(map[string]any{"directory": work, "hashes": []string{there.Items[0].Hash}})
	if err != nil {
		t.Fatal(err)
	}
	c.call("POST", "trust", string(wish), 204, nil)
	for _, query := range []string{"", in} {
		c.call("GET", "trust/approvals"+query, "", 200, &list)
		if len(list.Items) != 1 || list.Items[0].Directory != work || list.Items[0].Name != ".mcp.json" || list.Items[0].Detail != there.Items[0].Detail || list.Items[0].ApprovedAt.IsZero() {
			t.Errorf("approvals%s: got %+v, want .mcp.json of %s", query, list, work)
		}
	}
	c.refused("GET", "trust/approvals?directory=relative", "", 400, "directory.relative")
	c.refused("DELETE", "trust/approvals?directory=relative", "", 400, "directory.relative")
	if err := os.RemoveAll(work); err != nil {
		t.Fatal(err)
	}
	c.call("DELETE", "trust/approvals"+in, "", 204, nil)
	c.call("DELETE", "trust/approvals"+in, "", 204, nil)
	c.call("GET", "trust/approvals", "", 200, &list)
	if len(list.Items) != 0 {
		t.Errorf("approvals: got %+v, want none", list)
	}
}
