package attachment_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"deskhand/backend/attachment"
)

// TestFetch: Fetch follows Download's rules for hosts, sizes and redirects.
func TestFetch(t *testing.T) {
	t.Parallel()
	other := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("secret")) }))
	defer other.Close()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other.URL+"/x?signature=1", http.StatusFound)
		case "/short":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("short"))
		case "/gone":
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "text/x-log")
			_, _ = w.Write([]byte("0123456789"))
		}
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "https://")
	for _, c := range []struct {
		path   string
		limits attachment.DownloadLimits
		code   string
	}{
		{"/a.log", attachment.DownloadLimits{}, ""},
		{"/a.log", attachment.DownloadLimits{PerFile: 9}, "attachment.too_large"},
		{"/a.log", attachment.DownloadLimits{PerCall: 9}, "attachment.total_too_large"},
		{"/away", attachment.DownloadLimits{}, "attachment.host"},
		{"/short", attachment.DownloadLimits{}, "attachment.unreadable"},
		{"/gone", attachment.DownloadLimits{}, "attachment.missing"},
		{"/a.log", attachment.DownloadLimits{Hosts: []string{"cdn.discordapp.com"}}, "attachment.host"},
	} {
		if c.limits.Hosts == nil {
			c.limits.Hosts = []string{host}
		}
		item := attachment.SentinelItem{URL: server.URL + c.path + "?ex=1&hm=signature", Filename: "a.log"}
		data, mime, err := attachment.Fetch(t.Context(), server.Client(), item, c.limits)
		problem, _ := errors.AsType[*attachment.Problem](err)
		switch {
		case c.code == "" && (err != nil || string(data) != "0123456789" || mime != "text/x-log"):
			t.Errorf(`%s: got data %q, mime %q, error %v, want not (c.code == "" && (err != nil || string(data) != "0123456789" || mime != "text/x-log"))`, c.path, data, mime, err)
		case c.code != "" && (problem == nil || problem.Code != c.code || data != nil || strings.Contains(err.Error(), "signature")):
			t.Errorf("%s: %q, %v, want %s", c.path, data, err, c.code)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := attachment.Fetch(ctx, server.Client(), attachment.SentinelItem{URL: server.URL}, attachment.DownloadLimits{Hosts: []string{host}}); err == nil {
		t.Error("it was fetched for nobody")
	}
}
