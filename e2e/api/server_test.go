package api

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/httpapi"
	"deskhand/backend/proxy"
	"deskhand/backend/store"
)

// server is an API on a port of its own.
type server struct {
	base   string
	client *http.Client
	stop   func()
}

// serve serves the API with the fake agents, without settings.
func serve(t *testing.T, root, script string) (string, *http.Client) {
	t.Helper()
	s := start(t, root, map[string]string{"agent": script}, map[string]string{})
	return s.base, s.client
}

// start serves the API with the fake agents "fake" and "other", both of which play the script, and with "missing" and "broken".
func start(t *testing.T, root string, parts, vars map[string]string) *server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	private := t.TempDir()
	if err := os.WriteFile(filepath.Join(private, "broken"), []byte("\x7fnot a program"), 0o700); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{scriptVariable: "\n" + expand(parts["agent"], vars), "GORACE": "atexit_sleep_ms=0"}
	list := []json.RawMessage{}
	for _, a := range []map[string]any{
		{"id": "fake", "name": "Fake", "command": self, "env": env},
		{"id": "other", "name": "Other", "command": self, "env": env},
		{"id": "missing", "name": "Missing", "command": "/nonexistent/agent"},
		{"id": "broken", "name": "Broken", "command": filepath.Join(private, "broken")},
	} {
		data, _ := json.Marshal(a)
		list = append(list, data)
	}
	for line := range strings.Lines(parts["agents.json"]) {
		list = append(list, json.RawMessage(strings.ReplaceAll(line, "$SELF", self)))
	}
	data, err := json.Marshal(map[string]any{"agents": list})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(private, "agents.json"), string(data))
	cfg := httpapi.Config{Version: "1", RuntimeToken: "the-token-of-these-tests", Roots: []string{root}, Private: []string{filepath.Join(root, "private")}}
	known := agents.Config{
		Self: self, File: filepath.Join(private, "agents.json"), Dir: filepath.Join(private, "agents"), WriteFile: store.WriteFile, Preinstalled: true,
	}
	settings(t, expand(parts["config"], vars), &cfg, &known)
	cfg.Agents = agents.Open(known)
	return listen(t, cfg, vars)
}

// settings sets what the part "config" says. "npm SCRIPT" lets requests install agents, with that as npm.
func settings(t *testing.T, text string, cfg *httpapi.Config, known *agents.Config) {
	t.Helper()
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		var err error
		switch name {
		case "no-token":
			cfg.NoToken = true
		case "request-timeout":
			cfg.RequestTimeout, err = time.ParseDuration(value)
		case "max-upload":
			cfg.MaxUpload, err = strconv.ParseInt(value, 10, 64)
		case "cors-allow-origin":
			cfg.AllowOrigins = append(cfg.AllowOrigins, value)
		case "allow-host":
			cfg.AllowHosts = append(cfg.AllowHosts, value)
		case "npm":
			bin := t.TempDir()
			known.Preinstalled, known.Environ = false, []string{"PATH=" + bin}
			err = os.WriteFile(filepath.Join(bin, "npm"), []byte("#!/bin/sh\n"+value+"\n"), 0o700)
			if err == nil {
				err = os.WriteFile(filepath.Join(bin, "node"), []byte("#!/bin/sh\necho v24.0.0\n"), 0o700)
			}
		default:
			t.Fatal("no setting", name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// listen serves an API. The logs of its instances hold 16 KiB.
func listen(t *testing.T, cfg httpapi.Config, vars map[string]string) *server {
	t.Helper()
	set, err := proxy.Open(proxy.Config{LogBytes: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Runtime = set
	api, err := httpapi.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	vars["$HOST"] = listener.Addr().String()
	web := httpapi.NewServer(api.Loopback(listener.Addr()))
	go func() { _ = web.Serve(listener) }()
	transport := &http.Transport{ExpectContinueTimeout: time.Minute, DisableCompression: true}
	stop := sync.OnceFunc(func() {
		if err := errors.Join(cfg.Agents.Close(), set.Close()); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
		_ = web.Close()
	})
	t.Cleanup(stop)
	return &server{"http://" + listener.Addr().String(), &http.Client{Transport: transport}, stop}
}
