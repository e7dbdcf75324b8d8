package cli_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"deskhand/backend/feed"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/testkit"
)

type inbox struct {
	Items     []requests.Request
	Questions []requests.WaitingQuestion
}

// asks sends the demo agent a word that makes the agent ask, and waits for the request.
func (c *caller) asks(s session.Session, word string) requests.Request {
	c.t.Helper()
	c.post("/client/sessions/"+s.ID+"/prompt", map[string]string{"message": word, "when": "queue"}, nil)
	return c.waits(s)
}

func (c *caller) waits(s session.Session) requests.Request {
	c.t.Helper()
	for deadline := time.Now().Add(testkit.Limit); time.Now().Before(deadline); {
		var page inbox
		c.get("/client/inbox", &page)
		for _, r := range page.Items {
			if r.Session == s.ID {
				return r
			}
		}
		<-time.After(10 * time.Millisecond)
	}
	c.t.Fatal("nothing is asked")
	return requests.Request{}
}

// ends waits for the end of a request.
func (c *caller) ends(id string) requests.Request {
	c.t.Helper()
	var r requests.Request
	c.watch("end of the request", func(e feed.Event) bool {
		if e.Type != "request.upsert" {
			return false
		}
		r = decode[requests.Request](e)
		return r.ID == id && r.Status != "requested"
	})
	return r
}

func TestInboxFromTerminal(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	if _, stderr, code := run(t, dir, "inbox"); code != 1 || !strings.Contains(stderr, "no Deskhand runs") {
		t.Errorf(`deskhand inbox: got exit code %d, stderr %s, want exit code 1 and stderr with "no Deskhand runs"`, code, stderr)
	}
	server(t, dir)
	if out, stderr, code := run(t, dir, "inbox"); code != 0 || out != "" || !strings.Contains(stderr, "Nothing waits") {
		t.Errorf(`deskhand inbox: got exit code %d, stdout %s, stderr %s, want exit code 0, stdout "" and stderr with "Nothing waits"`, code, out, stderr)
	}
	c := onSocket(t, dir)
	var s session.Session
	c.post("/client/sessions", session.New{Agent: "mock", Cwd: work}, &s)

	r := c.asks(s, "permission")
	list, _, code := run(t, dir, "inbox", "list")
	if code != 0 || !strings.Contains(list, r.ID) || !strings.Contains(list, "approval") || !strings.Contains(list, "Edit deskhand-demo.md") || !strings.Contains(list, s.ID) {
		t.Errorf("deskhand inbox list: want exit code 0, list with %v, list with \"approval\", list with \"Edit deskhand-demo.md\" and list with %v, got exit code %d\nlist %s", r.ID, s.ID, code, list)
	}
	raw, _, _ := run(t, dir, "inbox", "--json")
	var page inbox
	if err := json.Unmarshal([]byte(raw), &page); err != nil || len(page.Items) != 1 || page.Items[0].ID != r.ID {
		t.Fatalf("Unmarshal: want no error, 1 in page.Items and page.Items[0].ID %v, got error %v\nraw %s", r.ID, err, raw)
	}
	// Without an answer the command shows the request in full.
	if out, stderr, code := run(t, dir, "inbox", "answer", r.ID); code != 2 || out != "" || !strings.Contains(stderr, "1  Allow once") || !strings.Contains(stderr, "deskhand-demo.md") || !strings.Contains(stderr, "--option 1") {
		t.Errorf(`deskhand inbox answer ID: got exit code %d, stdout %s, stderr %s, want exit code 2, stdout "", stderr with "1  Allow once", stderr with "deskhand-demo.md" and stderr with "--option 1"`, code, out, stderr)
	}
	for name, args := range map[string][]string{
		"an option that is none":       {r.ID, "--option", "9"},
		"an answer of another kind":    {r.ID, "--choose", "1"},
		"two answers":                  {r.ID, "--option", "1", "--decline"},
		"a scope that is none":         {r.ID, "--option", "1", "--remember", "ever"},
		"a request that is none":       {"ffffffff", "--option", "1"},
		"no request":                   {},
		"an address for what has none": {r.ID, "--accept"},
	} {
		if out, stderr, code := run(t, dir, append([]string{"inbox", "answer"}, args...)...); code != 2 || out != "" || stderr == "" {
			t.Errorf(`%s: got exit code %d, stdout %s, stderr %s, want exit code 2, stdout "" and stderr other than ""`, name, code, out, stderr)
		}
	}
	if again := c.waits(s); again.ID != r.ID {
		t.Fatalf("waits: got again %+v, want again.ID %v", again, r.ID)
	}
	if _, stderr, code := run(t, dir, "inbox", "answer", r.ID[:20], "--decline"); code != 0 || !strings.Contains(stderr, "answered") {
		t.Errorf(`deskhand inbox answer --decline: got exit code %d, stderr %s, want exit code 0 and stderr with "answered"`, code, stderr)
	}
	if end := c.ends(r.ID); end.Status != "rejected" || end.AnsweredBy != "cli" {
		t.Errorf(`ends: got end %+v, want end.Status "rejected" and end.AnsweredBy "cli"`, end)
	}
	if _, err := os.Stat(work + "/deskhand-demo.md"); err == nil {
		t.Error("it was written all the same")
	}

	for name, tc := range map[string]struct {
		word   string
		args   []string
		answer string
		out    string
	}{
		"an approval, by its number": {"permission", []string{"--option", "1"}, `{"optionId":"allow-once"}`, ""},
		"an approval, by its name":   {"permission", []string{"--option", "reject"}, `{"optionId":"reject-once"}`, ""},
		"a question, by its number":  {"question", []string{"--choose", "2"}, `{"answers":[["option-b"]]}`, ""},
		"a question, by its label":   {"question", []string{"--choose", "option a"}, `{"answers":[["option-a"]]}`, ""},
		"a question, declined":       {"question", []string{"--decline"}, `{"reject":true}`, ""},
		"several questions":          {"questions", []string{"--choose", "1,Basil", "--choose", "Milk, cold"}, `{"answers":[["cheese","basil"],["Milk, cold"]]}`, ""},
		"a form, field by field": {
			"form",
			[]string{"--form", "name=a-b", "--form", "size=small", "--form", "features=api,cli", "--form", "port=80", "--form", "tests=false"},
			`{"action":"accept","content":{"features":["api","cli"],"name":"a-b","port":80,"size":"small","tests":false}}`, "",
		},
		"a form, as JSON":      {"form", []string{"--json", `{"name":"a","size":"large","features":["web"]}`}, `{"action":"accept","content":{"name":"a","size":"large","features":["web"]}}`, ""},
		"a form, declined":     {"form", []string{"--decline"}, `{"action":"decline"}`, ""},
		"a form, cancelled":    {"form", []string{"--cancel"}, `{"action":"cancel"}`, ""},
		"what nobody knows":    {"unknown request", []string{"--cancel"}, `{"action":"cancel"}`, ""},
		"an address":           {"visit", []string{"--accept"}, `{"action":"accept"}`, "https://sign-in.deskhand.invalid/device?code=DEMO-1234\n"},
		"an address, declined": {"visit", []string{"--decline"}, `{"action":"decline"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.asks(s, tc.word)
			out, stderr, code := run(t, dir, append([]string{"inbox", "answer", "last"}, tc.args...)...)
			if code != 0 || out != tc.out {
				t.Fatalf("got exit code %d, stdout %s, stderr %s, want exit code 0 and stdout %v", code, out, stderr, tc.out)
			}
			if end := c.ends(r.ID); string(end.Answer) != tc.answer {
				t.Errorf("answered is %s, want %s", end.Answer, tc.answer)
			}
		})
	}
	for name, tc := range map[string]struct {
		word string
		args []string
	}{
		"too few choices":            {"questions", []string{"--choose", "1"}},
		"a choice that is none":      {"question", []string{"--choose", "Option C"}},
		"words where none are taken": {"question", []string{"--text", "hello"}},
		"a rule for a question":      {"question", []string{"--choose", "1", "--remember", "session"}},
		"a field that is none":       {"form", []string{"--form", "colour=red"}},
		"a form that does not fit":   {"form", []string{"--form", "name=NOT A NAME"}},
		"no JSON":                    {"form", []string{"--json", "{"}},
		"both":                       {"form", []string{"--json", "{}", "--form", "name=a"}},
		"a known answer":             {"unknown request", []string{"--decline"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.asks(s, tc.word)
			if out, stderr, code := run(t, dir, append([]string{"inbox", "answer", r.ID}, tc.args...)...); code != 2 || out != "" || stderr == "" {
				t.Errorf(`got exit code %d, stdout %s, stderr %s, want exit code 2, stdout "" and stderr other than ""`, code, out, stderr)
			}
			if again := c.waits(s); again.ID != r.ID {
				t.Errorf("request after refused answers: got %+v, want %s", again, r.ID)
			}
			c.post("/client/sessions/"+s.ID+"/cancel", nil, nil)
			c.ends(r.ID)
		})
	}
}

// TestInboxAnswerIsRemembered: an answer with --remember also stores a rule.
func TestInboxAnswerIsRemembered(t *testing.T) {
	dir := t.TempDir()
	server(t, dir)
	c := onSocket(t, dir)
	var s session.Session
	c.post("/client/sessions", session.New{Agent: "mock", Cwd: t.TempDir()}, &s)
	r := c.asks(s, "permission")
	if _, stderr, code := run(t, dir, "inbox", "answer", "last", "--option", "1", "--remember", "session"); code != 0 {
		t.Fatalf("deskhand inbox answer last --option 1 --remember session: got exit code %d, stderr %s, want exit code 0", code, stderr)
	}
	if end := c.ends(r.ID); end.Status != "answered" || end.AnsweredBy != "cli" {
		t.Errorf(`ends: got end %+v, want end.Status "answered" and end.AnsweredBy "cli"`, end)
	}
	var rules struct {
		Items []struct{ Session, Scope, Effect string }
	}
	c.get("/client/rules?session="+s.ID, &rules)
	found := false
	for _, rule := range rules.Items {
		found = found || rule.Session == s.ID && rule.Scope == "session" && rule.Effect == "allow"
	}
	if !found {
		t.Errorf("rules: got %+v, want one that allows in session %s", rules, s.ID)
	}
}

// TestInboxAnswerOfTwoSurfacesAtOnce: two programs answer at the same moment, each over a connection of its own. One answer is accepted, and the
// other program is told who was first.
func TestInboxAnswerOfTwoSurfacesAtOnce(t *testing.T) {
	dir := t.TempDir()
	_, link := server(t, dir)
	here, there := onSocket(t, dir), onLoopback(t, link)
	var s session.Session
	here.post("/client/sessions", session.New{Agent: "mock", Cwd: t.TempDir()}, &s)
	firsts := map[string]int{}
	for range 20 {
		r := here.asks(s, "question")
		var page inbox
		there.get("/client/inbox", &page)
		if len(page.Questions) != 1 || page.Questions[0].SessionID != s.ID || page.Questions[0].RequestID != r.ID || strings.Join(page.Questions[0].Options, " ") != "option-a option-b" {
			t.Fatalf(`got page.Questions %+v, want 1 in page.Questions, page.Questions[0].SessionID %v, page.Questions[0].RequestID %v and strings.Join(page.Questions[0].Options, " ") "option-a option-b"`, page.Questions, s.ID, r.ID)
		}
		type outcome struct {
			status int
			body   string
		}
		var got [2]outcome
		var wg sync.WaitGroup
		start := make(chan struct{})
		wg.Go(func() {
			<-start
			status, body := here.do("POST", "/client/requests/"+r.ID+"/answer", map[string]any{"answers": [][]string{{"option-a"}}}, "Deskhand-Surface", "window")
			got[0] = outcome{status, string(body)}
		})
		wg.Go(func() {
			<-start
			status, body := there.do("POST", "/client/sessions/"+s.ID+"/questions/"+r.ID+"/reply", map[string]any{"answers": [][]string{{"option-b"}}}, "Deskhand-Surface", "browser")
			got[1] = outcome{status, string(body)}
		})
		close(start)
		wg.Wait()
		first, second, who, want := got[0], got[1], "window", "option-a"
		if second.status == http.StatusNoContent {
			first, second, who, want = second, first, "browser", "option-b"
		}
		firsts[who]++
		if first.status != http.StatusNoContent || second.status != http.StatusConflict || !strings.Contains(second.body, `"request.resolved"`) || !strings.Contains(second.body, `"answeredBy":"`+who+`"`) {
			t.Fatalf("got %+v, want first.status http.StatusNoContent, second.status http.StatusConflict, second.body with \"\\\"request.resolved\\\"\" and second.body with `\"answeredBy\":\"`+who+`\"`", got)
		}
		if end := here.ends(r.ID); end.AnsweredBy != who || !strings.Contains(string(end.Answer), want) {
			t.Fatalf("request: got %+v, want it answered by %s with %s", end, who, want)
		}
		if _, stderr, code := run(t, dir, "inbox", "answer", r.ID, "--choose", "1"); code != 3 || !strings.Contains(stderr, "too late: it was answered in ") {
			t.Fatalf("answered again: exit code %d, want 3 and who was first\n%s", code, stderr)
		}
	}
	t.Logf("first was %v", firsts)
}

// onLoopback is a caller over TCP, with a token that the link was exchanged for.
func onLoopback(t *testing.T, link string) *caller {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	c := &caller{t: t, http: &http.Client{Transport: &http.Transport{}}, base: "http://" + u.Host}
	t.Cleanup(c.http.CloseIdleConnections)
	code, err := url.ParseQuery(u.Fragment)
	if err != nil {
		t.Fatal(err)
	}
	var granted struct{ Token string }
	c.post("/client/login", map[string]string{"code": code.Get("code")}, &granted)
	c.token = granted.Token
	return c
}

// TestQuestionsOverTheAPI: the question routes of the seed answer 204, 404 or 409, with their own fields only.
func TestQuestionsOverTheAPI(t *testing.T) {
	dir := t.TempDir()
	server(t, dir)
	c := onSocket(t, dir)
	var s session.Session
	c.post("/client/sessions", session.New{Agent: "mock", Cwd: t.TempDir()}, &s)
	r := c.asks(s, "question")
	path := "/client/sessions/" + s.ID + "/questions/"
	for name, tc := range map[string]struct {
		path   string
		body   any
		status int
		code   string
	}{
		"a question that is none": {path + "none/reply", map[string]any{"answers": [][]string{{"option-a"}}}, 404, "not_found"},
		"another session":         {"/client/sessions/other/questions/" + r.ID + "/reject", nil, 404, "not_found"},
		"an option that is none":  {path + r.ID + "/reply", map[string]any{"answers": [][]string{{"option-c"}}}, 400, "answer.unknown_option"},
		"no answers":              {path + r.ID + "/reply", map[string]any{}, 400, "request.invalid"},
		"one field too many":      {path + r.ID + "/reply", map[string]any{"answers": [][]string{{"option-a"}}, "more": 1}, 400, "request.invalid"},
		"too many answers":        {path + r.ID + "/reply", map[string]any{"answers": [][]string{{"option-a"}, {"option-b"}}}, 400, "answer.count"},
	} {
		if status, body := c.do("POST", tc.path, tc.body); status != tc.status || !strings.Contains(string(body), `"`+tc.code+`"`) {
			t.Errorf("%s: do(\"POST\"): got status %d, body %s, want status %v and body with `\"`+tc.code+`\"`", name, status, body, tc.status)
		}
	}
	if status, body := c.do("POST", path+r.ID+"/reply", map[string]any{"answers": [][]string{{"option-b"}}}); status != http.StatusNoContent || len(body) != 0 {
		t.Errorf(`do("POST"): got status %d, body %s, want status http.StatusNoContent and no body`, status, body)
	}
	for verb, body := range map[string]any{"/reply": map[string]any{"answers": [][]string{{"option-b"}}}, "/reject": nil} {
		if status, body := c.do("POST", path+r.ID+verb, body); status != http.StatusConflict || !strings.Contains(string(body), `"answeredBy":"api"`) {
			t.Errorf("%s: do(\"POST\", %s): got status %d, want status http.StatusConflict and body with \"\\\"answeredBy\\\":\\\"api\\\"\"", verb, body, status)
		}
	}
	second := c.asks(s, "question")
	if status, body := c.do("POST", path+second.ID+"/reject", nil); status != http.StatusNoContent || len(body) != 0 {
		t.Errorf(`do("POST"): got status %d, body %s, want status http.StatusNoContent and no body`, status, body)
	}
	var hello struct{ Gen string }
	c.get("/client/hello", &hello)
	var batch feed.Batch
	c.get("/client/events?wait=0&types=question.requested,question.resolved&gen="+hello.Gen, &batch)
	var told []string
	for _, e := range batch.Events {
		q := decode[requests.QuestionEvent](e)
		response := "null"
		if q.Response != nil {
			response = *q.Response
		}
		told = append(told, e.Type+" "+q.Status+" "+response)
	}
	want := "question.requested requested null, question.resolved answered option-b, question.requested requested null, question.resolved rejected null"
	if have := strings.Join(told, ", "); have != want {
		t.Errorf("events: got %s, want %s", have, want)
	}
}
