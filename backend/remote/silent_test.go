package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/testkit"
)

// muting is a listener whose connections can fall silent: they stand, and nothing comes over them.
type muting struct {
	net.Listener
	mu    sync.Mutex // protects the field below
	conns []*muted
}

type muted struct {
	net.Conn
	silent atomic.Bool
}

func (l *muting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, &muted{Conn: c})
	return l.conns[len(l.conns)-1], nil
}

// mute silences the connections that there are.
func (l *muting) mute() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.silent.Store(true)
	}
}

func (c *muted) Read(p []byte) (int, error) {
	for {
		if n, err := c.Conn.Read(p); err != nil || !c.silent.Load() {
			return n, err
		}
	}
}

func (c *muted) Write(p []byte) (int, error) {
	if c.silent.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// A connection that nothing comes over any more is not used again, also where the server would have all go over one.
func TestSilentConnectionIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		th := runtimeThere(t, "Deskhand")
		lines := make(chan struct{}, 100)
		th.on("GET", func(w http.ResponseWriter, r *http.Request) {
			lines <- struct{}{}
			silent(w, r)
		})
		th.on("POST", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
		server := httptest.NewUnstartedServer(th.mux)
		network := newMemory()
		listener := &muting{Listener: network}
		server.Listener, server.EnableHTTP2 = listener, true
		server.StartTLS()
		defer server.Close()
		defer server.CloseClientConnections()
		r := New(Config{
			URL: server.URL, Token: func(context.Context) (string, error) { return "", nil },
			Stall: time.Second, Answer: 500 * time.Millisecond, Backoff: 100 * time.Millisecond,
		})
		defer r.Close()
		network.carry(t, r)
		transport, _ := r.http.Transport.(*http.Transport)
		if transport.TLSClientConfig == nil {
			transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		transport.TLSClientConfig.RootCAs.AddCert(server.Certificate())

		i := r.Instance(Start{ServerID: "a", Agent: "x", Running: true})
		defer i.Leave()
		cancel := []byte(`{"jsonrpc":"2.0","method":"session/cancel","params":{}}`)
		if err := i.Send(t.Context(), cancel); err != nil {
			t.Fatal(err)
		}
		within(t, "line", lines)
		listener.mute()
		ctx, done := context.WithTimeout(t.Context(), testkit.Limit)
		defer done()
		if err := i.Send(ctx, cancel); err != nil {
			t.Error(err)
		}
		within(t, "line that is made anew", lines)
	})
}
