package export

import (
	"testing"

	"deskhand/backend/journal"
)

func TestRecordingHasNoAccount(t *testing.T) {
	t.Parallel()
	const told = `{"jsonrpc":"2.0","method":"_auth/status_update","params":{"authStatus":{"kind":"account","account":{"email":"ada@example.org"}}}}`
	const said = `{"jsonrpc":"2.0","method":"session/update","params":{"text":"auth/status_update"}}`
	for _, c := range []struct {
		dir        journal.Direction
		data, want string
	}{
		{journal.In, told, `{"jsonrpc":"2.0","method":"_auth/status_update","params":{}}`},
		{journal.In, `{"method":"_auth\/status_update","params":{"email":"ada@example.org"}}`, `{"jsonrpc":"2.0","method":"_auth/status_update","params":{}}`},
		{journal.In, said, said},
		{journal.In, `no JSON: auth/status_update`, `no JSON: auth/status_update`},
		{journal.Out, told, told}, // nothing that an agent has told
	} {
		if got := string(withoutAccount(journal.Frame{Dir: c.dir, Data: []byte(c.data)})); got != c.want {
			t.Errorf("withoutAccount(%s %s): got %s, want %s", c.dir, c.data, got, c.want)
		}
	}
}
