package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"deskhand/backend/discord/discordtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestItSaysWhereItIsAndEndsWithItsInput(t *testing.T) {
	in, input := io.Pipe()
	output, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(in, out) }()
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var w where
	if err := json.Unmarshal(line, &w); err != nil || w.Token == "" || w.Channel == 0 || !strings.HasPrefix(w.Certificate, "-----BEGIN CERTIFICATE") {
		t.Fatalf("it says %s: %v", line, err)
	}
	do := func(what string, deed any, into any) int {
		t.Helper()
		body, _ := json.Marshal(deed)
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, w.Control+what, bytes.NewReader(body))
		req.Close = true
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode
	}
	var person string
	do("user", map[string]any{"name": "Mira"}, &person)
	var said discordtest.Message
	do("say", map[string]any{"channel": w.Channel, "user": person, "text": "hello", "files": []any{map[string]any{"name": "a.txt", "data": []byte("abc")}}}, &said)
	var shown []discordtest.Message
	do("messages", map[string]any{"channel": w.Channel}, &shown)
	if len(shown) != 1 || shown[0].ID != said.ID || shown[0].Text != "hello" || string(shown[0].Files[0].Data) != "abc" || shown[0].Author.Name != "Mira" {
		t.Errorf("shown is %+v", shown)
	}
	var refused map[string]string
	if status := do("press", map[string]any{"channel": w.Channel, "message": said.ID, "user": person, "control": "x"}, &refused); status != http.StatusConflict || refused["error"] == "" {
		t.Errorf("a control that is not there: %d, %v", status, refused)
	}
	if status := do("fault", map[string]any{"name": "x"}, &refused); status != http.StatusNotFound {
		t.Errorf("a fault that is not there: %d, %v", status, refused)
	}
	var nothing any
	if status := do("fault", map[string]any{"name": "down", "on": true}, &nothing); status != http.StatusOK {
		t.Errorf("a fault: %d", status)
	}
	_ = input.Close()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}
