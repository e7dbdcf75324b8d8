package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/feed"
	"deskhand/backend/session"
)

// TestQueueIsThereAfterKill kills the program at any point while prompts are queued and sent. Every accepted prompt has become a turn or
// still waits, never both, and a waiting prompt is held, so that nothing runs by itself.
func TestQueueIsThereAfterKill(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	const longest = 900 * time.Millisecond
	turned, waited := 0, 0
	for round := range rounds(t, 4) {
		p, _ := server(t, dir)
		c := onSocket(t, dir)
		var s session.Session
		c.post("/client/sessions", session.New{Agent: "mock", Cwd: work}, &s)
		w := watch(t, c, s.ID)
		accepted := map[string]string{} // message by id
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for n := 0; ; n++ {
				// Turns are short, so that items leave the queue all the time.
				message := fmt.Sprintf("/silent %d", n)
				var sent session.Sent
				if !w.try(ctx, "POST", "/client/sessions/"+s.ID+"/prompt", `{"message":"`+message+`","when":"queue"}`, &sent) {
					if !w.try(ctx, "GET", "/client/hello", "", nil) {
						return
					}
					n--
					continue // the queue is full
				}
				if sent.Turn != nil {
					accepted[sent.Turn.ID] = message
				} else {
					accepted[sent.QueueItem.ID] = message
				}
			}
		}()
		<-time.After(longest/4 + rand.N(longest)) // the kill may hit any point
		_ = p.Process.Kill()
		_, _ = p.end()
		<-done
		cancel()
		sound(t, dir)

		after, _ := server(t, dir)
		c = onSocket(t, dir)
		now, stored := c.transcript(s.ID)
		var queue session.Page[session.QueueItem]
		c.get("/client/sessions/"+s.ID+"/queue", &queue)
		if now.Queue != len(queue.Items) || now.Turn != nil {
			t.Errorf("round %d: got %d items told, %d there, turn %v; want them equal and no turn", round, now.Queue, len(queue.Items), now.Turn)
		}
		turns, asked := map[string]bool{}, map[string]int{}
		for _, turn := range stored.Turns {
			turns[turn.ID] = true
		}
		for _, e := range stored.Items {
			if e.Kind == "user" {
				asked[e.Text]++
			}
		}
		waits := map[string]bool{}
		for _, q := range queue.Items {
			waits[q.ID] = true
			if q.Held != "interrupted" {
				t.Errorf("round %d: item %q: got held %q, want interrupted", round, q.Message, q.Held)
			}
			if asked[q.Message] > 0 {
				t.Errorf("round %d: item %q: got it sent and waiting, want one of both", round, q.Message)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(accepted)) {
			if turns[id] == waits[id] || turns[id] && asked[accepted[id]] != 1 {
				t.Errorf("round %d: prompt %q: got a turn %v, waiting %v, asked %d times; want it either waiting or asked once in its turn", round, accepted[id], turns[id], waits[id], asked[accepted[id]])
			}
		}
		turned, waited = turned+len(turns), waited+len(waits)
		_ = after.Process.Kill()
		_, _ = after.end()
	}
	t.Logf("%d became turns, %d waited", turned, waited)
	if turned == 0 || waited == 0 {
		t.Error("nothing was queued, or nothing went out: the rounds are too short")
	}
}

func TestQueueOverAPI(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server(t, dir)
	c := onSocket(t, dir)
	s := c.begin(t.TempDir(), "slow")
	path := "/client/sessions/" + s.ID
	refuse := func(method, path string, in any, status int, code string) {
		t.Helper()
		got, data := c.do(method, path, in)
		if got != status || !strings.Contains(string(data), `"code":"`+code+`"`) {
			t.Errorf("%s %s %v: %d %s, want %d %s", method, path, in, got, data, status, code)
		}
	}
	prompt := func(message, when string) map[string]string {
		return map[string]string{"message": message, "when": when}
	}
	refuse("POST", path+"/prompt", map[string]string{"message": "x"}, http.StatusConflict, "turn.running")
	refuse("POST", path+"/prompt", prompt("x", "now"), http.StatusConflict, "turn.running")
	refuse("POST", path+"/prompt", prompt("x", "soon"), http.StatusBadRequest, "request.invalid")
	refuse("POST", path+"/prompt", prompt(" ", "queue"), http.StatusBadRequest, "prompt.empty")

	status, data := c.do("POST", path+"/prompt", prompt("plan", "queue"))
	var sent struct {
		Turn      *session.Turn
		QueueItem session.QueueItem
	}
	if err := json.Unmarshal(data, &sent); err != nil || status != http.StatusAccepted || sent.Turn != nil || sent.QueueItem.Message != "plan" {
		t.Fatalf(`Unmarshal: got status %d, data %s, want no error, status http.StatusAccepted, sent.Turn nil and sent.QueueItem.Message "plan"`, status, data)
	}
	item := path + "/queue/" + sent.QueueItem.ID
	if status, data := c.do("PATCH", item, map[string]any{"message": "thought", "held": true, "position": 5}); status != http.StatusOK {
		t.Errorf(`do("PATCH"): got status %d, data %s, want status http.StatusOK`, status, data)
	}
	var queue session.Page[session.QueueItem]
	c.get(path+"/queue", &queue)
	if len(queue.Items) != 1 || queue.Items[0].Message != "thought" || queue.Items[0].Held != "person" {
		t.Errorf(`got queue %+v, want 1 in queue.Items, queue.Items[0].Message "thought" and queue.Items[0].Held "person"`, queue)
	}
	refuse("PATCH", item, map[string]any{"position": -1}, http.StatusBadRequest, "request.invalid")
	refuse("PATCH", item, map[string]any{"message": ""}, http.StatusBadRequest, "prompt.empty")
	refuse("PATCH", path+"/queue/other", map[string]any{"send": true}, http.StatusConflict, "queue.gone")
	refuse("GET", "/client/sessions/other/queue", nil, http.StatusNotFound, "not_found")
	if status, data := c.do("DELETE", item, nil); status != http.StatusNoContent {
		t.Errorf(`do("DELETE"): got status %d, data %s, want status http.StatusNoContent`, status, data)
	}
	refuse("DELETE", item, nil, http.StatusConflict, "queue.gone")
	c.post(item+"/restore", nil, &sent.QueueItem)
	if sent.QueueItem.Message != "thought" {
		t.Errorf(`got sent.QueueItem %+v, want sent.QueueItem.Message "thought"`, sent.QueueItem)
	}
	if status, data := c.do("PATCH", item, map[string]any{"send": true}); status != http.StatusOK {
		t.Errorf(`do("PATCH"): got status %d, data %s, want status http.StatusOK`, status, data)
	}
	c.watch("end of the turn", func(e feed.Event) bool {
		return e.Type == "turn.upsert" && decode[session.Turn](e).ID == sent.QueueItem.ID && decode[session.Turn](e).StopReason == "end_turn"
	})
}
