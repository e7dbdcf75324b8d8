package session_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deskhand/backend/feed"
	"deskhand/backend/requests"
	"deskhand/backend/rulebook"
	"deskhand/backend/session"
)

type object = map[string]any

// asksQuestion is a step that asks a question by the extension, with options of ids and labels.
func asksQuestion(more object) step {
	params := object{"questionId": "q", "prompt": "Which colour?", "options": []any{[]string{"r", "Red"}, []string{"b", "Blue"}}}
	maps.Copy(params, more)
	return step{Ask: "_sandboxagent/session/request_question", Params: params}
}

func asksForm(message, schema string) step {
	return step{Ask: "elicitation/create", Params: object{"mode": "form", "message": message, "requestedSchema": json.RawMessage(schema)}}
}

func asksURL(id, address string) step {
	return step{Ask: "elicitation/create", Params: object{"mode": "url", "message": "Sign in", "elicitationId": id, "url": address}}
}

func asksPermission(tool object, options ...object) step {
	tool["toolCallId"] = "t"
	return step{Ask: "session/request_permission", Params: object{"toolCall": tool, "options": options}}
}

func option(id, name, kind string) object { return object{"optionId": id, "name": name, "kind": kind} }

// questionEvents returns the question events so far, oldest first, once there are at least so many.
func (d *desk) questionEvents(atLeast int) (list []feed.Event) {
	d.t.Helper()
	d.until("event of each question", func() bool { // the events come after the request is stored
		batch, err := d.Feed().After(d.t.Context(), feed.Query{Gen: d.Feed().Gen(), Types: []string{"question.requested", "question.resolved"}})
		if err != nil || batch.Reset {
			d.t.Fatal(err, batch.Reset)
		}
		list = batch.Events
		return len(list) >= atLeast
	})
	return list
}

// The questions that Claude asks by its AskUserQuestion, and Codex by its request_user_input.
const (
	claudeForm = `{"type":"object","properties":{
		"question_0":{"type":"string","title":"Colour","oneOf":[{"const":"Red","title":"Red","description":"warm"},{"const":"Blue","title":"Blue"}]},
		"question_0_custom":{"type":"string","title":"Other"},
		"question_1":{"type":"array","title":"Sizes","items":{"anyOf":[{"const":"S","title":"Small"},{"const":"M","title":"Medium"}]}},
		"question_1_custom":{"type":"string","title":"Other"}}}`
	codexForm = `{"type":"object","required":["colour"],"properties":{
		"colour":{"type":"string","title":"Which colour?","_meta":{"codex":{"isOther":true}},"oneOf":[
			{"const":"Red","title":"Red"},{"const":"None of the above","title":"None of the above"}]},
		"colour_note":{"type":"string","title":"Note","_meta":{"codex":{"questionId":"colour","role":"user_note"}}}}}`
	plainForm = `{"type":"object","required":["name"],"properties":{"name":{"type":"string","title":"Name"},"port":{"type":"integer"},
		"tests":{"type":"boolean"},"ratio":{"type":"number","default":0.5}}}`
)

// TestQuestionsOfEveryChannel: each kind of request appears as questions, a reply reaches its agent in the agent's form, and the events
// tell the answer.
func TestQuestionsOfEveryChannel(t *testing.T) {
	t.Parallel()
	plan := func() step {
		return asksPermission(object{"title": "Ready to code?", "kind": "switch_mode"},
			option("auto", "Yes, and accept edits", "allow_always"), option("ask", "Yes, and ask", "allow_once"), option("no", "Keep planning", "reject_once"))
	}
	for name, tc := range map[string]struct {
		ask       step
		asked     []string   // of each question: its number in the id, prompt and options
		reply     [][]string // nil = the question is rejected
		answer    string     // the agent's answer
		responses []string   // the responses in the events; "-" = null
	}{
		"extension":           {asksQuestion(nil), []string{" Which colour? r,b"}, [][]string{{"b"}}, `{"answers":[["b"]],"status":"answered"}`, []string{"b"}},
		"extension, rejected": {asksQuestion(nil), []string{" Which colour? r,b"}, nil, `{"status":"rejected"}`, []string{"-"}},
		"options without ids, and words of one's own": {
			asksQuestion(object{"options": []string{"Red", "Blue"}, "allowFreeText": true}),
			[]string{" Which colour? Red,Blue"},
			[][]string{{"mauve"}},
			`{"answers":[["mauve"]],"status":"answered"}`,
			[]string{"mauve"},
		},
		"several questions": {
			asksQuestion(object{"questions": []object{{"prompt": "One?", "options": []string{"a", "b"}, "multiSelect": true}, {"question": "Two?"}}}),
			[]string{".1 One? a,b", ".2 Two? "},
			[][]string{{"b", "a"}, {"words"}},
			`{"answers":[["b","a"],["words"]],"status":"answered"}`,
			[]string{"b", "words"},
		},
		"Claude's form": {
			asksForm("Please answer.", claudeForm),
			[]string{".1 Please answer.\nColour Red,Blue", ".2 Please answer.\nSizes S,M"},
			[][]string{{"Blue"}, {"Medium", "S"}},
			`{"action":"accept","content":{"question_0":"Blue","question_1":["M","S"]}}`,
			[]string{"Blue", "M"},
		},
		"Claude's form, with words that are no option": {
			asksForm("Please answer.", claudeForm),
			[]string{".1 Please answer.\nColour Red,Blue", ".2 Please answer.\nSizes S,M"},
			[][]string{{"mauve"}, {"S", "huge"}},
			`{"action":"accept","content":{"question_0_custom":"mauve","question_1":["S"],"question_1_custom":"huge"}}`,
			[]string{"mauve", "S"},
		},
		"Claude's form, the second left out": {
			asksForm("Please answer.", claudeForm),
			[]string{".1 Please answer.\nColour Red,Blue", ".2 Please answer.\nSizes S,M"},
			[][]string{{"Red"}},
			`{"action":"accept","content":{"question_0":"Red"}}`,
			[]string{"Red", "-"},
		},
		"Claude's form, rejected": {
			asksForm("Please answer.", claudeForm),
			[]string{".1 Please answer.\nColour Red,Blue", ".2 Please answer.\nSizes S,M"},
			nil, `{"action":"decline"}`,
			[]string{"-", "-"},
		},
		"Codex's form, with words that are no option": {
			asksForm("Codex needs your input.", codexForm),
			[]string{" Codex needs your input.\nWhich colour? Red,None of the above"},
			[][]string{{"mauve"}},
			`{"action":"accept","content":{"colour":"None of the above","colour_note":"mauve"}}`,
			[]string{"None of the above"},
		},
		"a form of plain fields": {
			asksForm("New project", plainForm),
			[]string{".1 New project\nName ", ".2 New project\nport ", ".3 New project\nratio ", ".4 New project\ntests true,false"},
			[][]string{{"a"}, {"80"}, {}, {"true"}},
			`{"action":"accept","content":{"name":"a","port":80,"tests":true}}`,
			[]string{"a", "80", "-", "true"},
		},
		"a form without fields": {
			asksForm("Go on?", `{"type":"object","properties":{}}`), []string{" Go on? accept"}, [][]string{{"accept"}}, `{"action":"accept","content":{}}`, []string{"accept"},
		},
		"an address":           {asksURL("e", "https://example.com/x?y=1"), []string{" Sign in\nhttps://example.com/x?y=1 accept"}, [][]string{{"accept"}}, `{"action":"accept"}`, []string{"accept"}},
		"an address, rejected": {asksURL("e", "https://example.com/"), []string{" Sign in\nhttps://example.com/ accept"}, nil, `{"action":"decline"}`, []string{"-"}},
		"a plan, by its id":    {plan(), []string{" Ready to code? auto,ask,no"}, [][]string{{"ask"}}, `{"outcome":{"optionId":"ask","outcome":"selected"}}`, []string{"ask"}},
		"a plan, by its label": {plan(), []string{" Ready to code? auto,ask,no"}, [][]string{{"Yes, and accept edits"}}, `{"outcome":{"optionId":"auto","outcome":"selected"}}`, []string{"auto"}},
		"a plan, rejected":     {plan(), []string{" Ready to code? auto,ask,no"}, nil, `{"outcome":{"optionId":"no","outcome":"selected"}}`, []string{"-"}},
		"a choice among ways to allow": {
			asksPermission(object{"title": "Edit"}, option("1", "Once", "allow_once"), option("2", "Once, and switch", "allow_once"), option("3", "No", "reject_once")),
			[]string{" Edit 1,2,3"},
			[][]string{{"2"}},
			`{"outcome":{"optionId":"2","outcome":"selected"}}`,
			[]string{"2"},
		},
		"Qwen's question": {
			asksPermission(object{"title": "Ask user", "_meta": object{"qwenInteractionKind": "user_question", "qwenQuestions": []object{
				{"question": "Which colour?", "options": []object{{"label": "Red"}, {"label": "Blue"}}},
			}}}, option("y", "Submit", "allow_once"), option("n", "Cancel", "reject_once")),
			[]string{" Which colour? Red,Blue"},
			[][]string{{"Blue"}},
			`{"answers":{"0":"Blue"},"outcome":{"optionId":"y","outcome":"selected"}}`,
			[]string{"Blue"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := askingDesk(t, t.TempDir())
			id := d.asking()
			d.begin(id, tc.ask)
			r := d.request(id)
			d.checkAsked(r, tc.asked)
			var err error
			if tc.reply == nil {
				err = d.RejectQuestion(t.Context(), id, r.ID, "api")
			} else {
				err = d.ReplyQuestion(t.Context(), id, r.ID, tc.reply, "api")
			}
			if err != nil {
				t.Fatal(err)
			}
			got := d.heard(id)
			if have := string(sorted(t, got[0].Result)); have != tc.answer {
				t.Errorf("the agent hears %s, want %s", have, tc.answer)
			}
			if !strings.HasPrefix(tc.ask.Ask, "_") {
				d.checkFrames(t, id)
			}
			d.checkResolved(len(tc.asked), tc.reply != nil, tc.responses)
			refused(t, d.ReplyQuestion(t.Context(), id, r.ID, [][]string{{"b"}}, "api"), "request.resolved")
			refused(t, d.RejectQuestion(t.Context(), id, r.ID, "api"), "request.resolved")
			d.sameAsRebuilt(id)
		})
	}
}

// heard returns the answers that the agent got, at the end of its turn.
func (d *desk) heard(id string) []answer {
	d.t.Helper()
	tr := d.idle(id)
	var got []answer
	for _, e := range tr.Items {
		if e.Kind == "agent" {
			if err := json.Unmarshal([]byte(e.Text), &got); err != nil {
				d.t.Fatalf("the agent said %.300q: %v", e.Text, err)
			}
		}
	}
	if len(got) == 0 {
		d.t.Fatalf("the agent said nothing: %+v", tr.Items)
	}
	return got
}

// sorted returns JSON with its names in order.
func sorted(t *testing.T, raw json.RawMessage) []byte {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// checkAsked compares the events and the inbox with want; events with other fields fail the test.
func (d *desk) checkAsked(r requests.Request, want []string) {
	d.t.Helper()
	events := d.questionEvents(len(want))
	waiting := requests.QuestionsOf([]requests.Request{r})
	if len(events) != len(want) || len(waiting) != len(want) {
		d.t.Fatalf("%d events and %d questions, want %d: %+v", len(events), len(waiting), len(want), waiting)
	}
	for i, e := range events {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(e.Data, &fields); err != nil {
			d.t.Fatal(err)
		}
		if names := slices.Sorted(maps.Keys(fields)); !slices.Equal(names, []string{"choices", "options", "prompt", "question_id", "request_id", "response", "status"}) {
			d.t.Errorf("fields of the event: got %v, want those of a question", names)
		}
		if e.Type != "question.requested" || string(fields["response"]) != "null" || string(fields["status"]) != `"requested"` || e.Session != r.Session {
			d.t.Errorf("event: got %s of %s: %s; want question.requested of %s without a response", e.Type, e.Session, e.Data, r.Session)
		}
		w := waiting[i]
		have := strings.TrimPrefix(w.RequestID, r.ID) + " " + w.Prompt + " " + strings.Join(w.Options, ",")
		var q requests.QuestionEvent
		if err := json.Unmarshal(e.Data, &q); err != nil {
			d.t.Fatal(err)
		}
		if have != want[i] || w.SessionID != r.Session || q.QuestionID != w.QuestionID || q.RequestID != w.RequestID || q.Prompt != w.Prompt || !slices.Equal(q.Options, w.Options) || len(q.Choices) != len(q.Options) {
			d.t.Errorf("question %d is %q, want %q; the event is %+v", i, have, want[i], q)
		}
	}
}

func (d *desk) checkResolved(asked int, answered bool, responses []string) {
	d.t.Helper()
	events := d.questionEvents(asked + len(responses))
	if len(events) != asked+len(responses) {
		d.t.Fatalf("%d events: %+v", len(events), events)
	}
	for i, want := range responses {
		var q requests.QuestionEvent
		if err := json.Unmarshal(events[asked+i].Data, &q); err != nil {
			d.t.Fatal(err)
		}
		have, status := "-", "rejected"
		if q.Response != nil {
			have = *q.Response
		}
		if answered {
			status = "answered"
		}
		if have != want || q.Status != status || q.Reason != "" || events[asked+i].Type != "question.resolved" {
			d.t.Errorf("told %s %s, want %s %s", events[asked+i].Type, events[asked+i].Data, status, want)
		}
	}
}

// Questions of a request can be answered one by one: the agent gets all answers together, after the last.
func TestQuestionsAreAnsweredOneByOne(t *testing.T) {
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	d.begin(id, asksQuestion(object{"questions": []object{{"prompt": "One?", "options": []string{"a", "b"}}, {"prompt": "Two?", "options": []string{"c", "d"}}}}))
	r := d.request(id)
	reply := func(question string, lists ...[]string) error {
		return d.ReplyQuestion(t.Context(), id, question, lists, "api")
	}
	for _, unknown := range []string{".0", ".3", ".01", ".", ".x", ".1.1"} {
		if err := reply(r.ID+unknown, []string{"a"}); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("reply to %s = %v, want ErrNotFound", unknown, err)
		}
	}
	refused(t, reply(r.ID+".2", []string{"a"}), "answer.unknown_option")
	refused(t, reply(r.ID+".2", []string{"c"}, []string{"d"}), "answer.count")
	refused(t, reply(r.ID+".2"), "answer.count")
	refused(t, reply(r.ID, []string{"a"}), "answer.count")
	if err := reply(r.ID+".2", []string{"d"}); err != nil {
		t.Fatal(err)
	}
	refused(t, reply(r.ID+".2", []string{"c"}), "request.resolved")
	if again := d.request(id); again.Status != "requested" {
		t.Fatalf("request after 1 of its replies: got %+v, want it requested", again)
	}
	if err := reply(r.ID+".1", []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if got := d.heard(id); string(sorted(t, got[0].Result)) != `{"answers":[["a"],["d"]],"status":"answered"}` {
		t.Errorf("the agent hears %s", got[0].Result)
	}
	refused(t, reply(r.ID+".1", []string{"a"}), "request.resolved")
}

// Programs find a question by the agent's id. Deskhand's id stands beside it, and is needed when two waiting questions have the same id of
// the agent.
func TestQuestionsAreFoundByAgentsIDs(t *testing.T) {
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	reply := func(question string, lists ...[]string) error {
		return d.ReplyQuestion(t.Context(), id, question, lists, "api")
	}
	for range 2 { // an agent may use an id again
		d.begin(id, asksQuestion(object{"questionId": "colour/1.2"}))
		r := d.request(id)
		if got := requests.QuestionsOf([]requests.Request{r}); len(got) != 1 || got[0].QuestionID != "colour/1.2" || got[0].RequestID != r.ID {
			t.Fatalf("the question: got %+v, want the agent's id and %s", got, r.ID)
		}
		if err := reply("colour/1.2", []string{"b"}); err != nil {
			t.Fatal(err)
		}
		d.heard(id)
		refused(t, reply("colour/1.2", []string{"b"}), "request.resolved")
	}
	d.begin(id, asksQuestion(object{"questionId": 7, "questions": []object{{"questionId": "first", "prompt": "One?", "options": []string{"a"}}, {"prompt": "Two?", "options": []string{"c"}}}}))
	r := d.request(id)
	if got := requests.QuestionsOf([]requests.Request{r}); len(got) != 2 || got[0].QuestionID != "first" || got[1].QuestionID != "7.2" || got[1].RequestID != r.ID+".2" {
		t.Fatalf("two questions: got %+v, want the ids first and 7.2", got)
	}
	if err := errors.Join(reply("first", []string{"a"}), reply("7.2", []string{"c"})); err != nil {
		t.Fatal(err)
	}
	if got := d.heard(id); string(sorted(t, got[len(got)-1].Result)) != `{"answers":[["a"],["c"]],"status":"answered"}` {
		t.Errorf("the agent hears %s", got[len(got)-1].Result)
	}
	if err := reply("nobody", []string{"a"}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("an id that no question has: got %v, want ErrNotFound", err)
	}
}

func TestReplyQuestionRefusesOtherRequests(t *testing.T) {
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	d.begin(id, asksPermission(object{"title": "rm"}, option("y", "Yes", "allow_once"), option("a", "Always", "allow_always"), option("n", "No", "reject_once")))
	r := d.request(id)
	for name, err := range map[string]error{
		"an approval":        d.ReplyQuestion(t.Context(), id, r.ID, [][]string{{"y"}}, "api"),
		"an approval's no":   d.RejectQuestion(t.Context(), id, r.ID, "api"),
		"another session":    d.ReplyQuestion(t.Context(), "other", r.ID, [][]string{{"y"}}, "api"),
		"none":               d.ReplyQuestion(t.Context(), id, "none", [][]string{{"y"}}, "api"),
		"a part of one":      d.RejectQuestion(t.Context(), id, r.ID+".1", "api"),
		"another session no": d.RejectQuestion(t.Context(), "other", r.ID, "api"),
	} {
		if !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", name, err)
		}
	}
	if events := d.questionEvents(0); len(events) != 0 {
		t.Errorf("question events: got %+v, want none", events)
	}
	d.answer(r, requests.Answer{OptionID: "n"})
	d.idle(id)
}

// Readers that do not name the events of questions do not get them.
func TestQuestionEventsComeOnlyByName(t *testing.T) {
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	d.begin(id, asksQuestion(nil))
	d.request(id)
	d.questionEvents(1)
	for _, types := range [][]string{nil, {"request.upsert", "question.asked"}} {
		batch, err := d.Feed().After(t.Context(), feed.Query{Gen: d.Feed().Gen(), Types: types})
		if err != nil || len(batch.Events) == 0 || slices.ContainsFunc(batch.Events, func(e feed.Event) bool { return strings.HasPrefix(e.Type, "question.") }) {
			t.Errorf("After(types %v): got %v, %+v; want events without those of questions", types, err, batch.Events)
		}
	}
	batch, err := d.Feed().After(t.Context(), feed.Query{Gen: d.Feed().Gen(), Types: []string{"question.requested"}, Session: "other"})
	if err != nil || len(batch.Events) != 0 {
		t.Errorf("After(another session): got %v, %+v; want no events", err, batch.Events)
	}
}

// A question that ends without an answer tells why, and a late answer is refused with the same reason.
func TestUnansweredQuestionTellsWhy(t *testing.T) {
	three := 3
	for name, tc := range map[string]struct {
		steps  []step
		end    func(d *desk, id string) error
		reason string
	}{
		"withdrawn by the agent": {[]step{as("q", asksQuestion(nil)), {Notify: "_x"}, {Cancel: "q"}, {Await: "q"}}, nil, "cancelled"},
		"the turn was cancelled": {[]step{asksQuestion(nil)}, func(d *desk, id string) error { return d.Cancel(d.t.Context(), id) }, "cancelled"},
		"the agent died":         {[]step{as("q", asksQuestion(nil)), {Exit: &three}}, nil, "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			d := askingDeskWith(t, t.TempDir(), time.Minute)
			id := d.asking()
			d.begin(id, tc.steps...)
			var r requests.Request
			if tc.end != nil {
				r = d.request(id)
				if err := tc.end(d, id); err != nil {
					t.Fatal(err)
				}
			}
			d.until("the end", func() bool {
				requests := d.transcript(id).Requests
				if len(requests) == 1 {
					r = requests[0]
				}
				return r.Status != "" && r.Status != "requested"
			})
			if r.Status != tc.reason {
				t.Errorf("request: got status %s, want %s", r.Status, tc.reason)
			}
			for _, err := range []error{
				d.Answer(t.Context(), r.ID, requests.Answer{Answers: [][]string{{"b"}}}, "window"),
				d.ReplyQuestion(t.Context(), id, r.ID, [][]string{{"b"}}, "api"),
			} {
				var late *session.RefusedError
				if !errors.As(err, &late) || late.Bad || late.Code != "request.resolved" || late.Params["status"] != tc.reason {
					t.Errorf("late answer: got %v, want it refused as resolved", err)
				}
			}
			events := d.questionEvents(2)
			var q requests.QuestionEvent
			if len(events) != 2 || json.Unmarshal(events[1].Data, &q) != nil || q.Status != "rejected" || q.Reason != tc.reason || q.Response != nil {
				t.Errorf("question events: got %+v, want the second rejected for %s, without a response", events, tc.reason)
			}
			d.until("the end of the turn", func() bool { return d.get(id).Turn == nil })
			d.sameAsRebuilt(id)
		})
	}
}

func as(name string, s step) step {
	s.As = name
	return s
}

// A hundred requests at once are each answered by two surfaces at the same time: one answer is taken for each, and the agent gets that
// answer.
func TestRequestsAtOnceTakeOneAnswerEach(t *testing.T) {
	t.Parallel()
	const many = 100
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	var steps []step
	for i := range many {
		steps = append(steps, as(fmt.Sprint(i), asksQuestion(object{"prompt": fmt.Sprint("Question ", i), "allowFreeText": true})))
	}
	for i := range many {
		steps = append(steps, step{Await: fmt.Sprint(i)})
	}
	d.begin(id, steps...)
	var inbox []requests.Request
	d.until("all of them", func() bool {
		var err error
		if inbox, err = d.Requests().Waiting(t.Context()); err != nil {
			t.Fatal(err)
		}
		return len(inbox) == many && d.get(id).Waiting == many
	})
	if waiting := d.get(id).Waiting; waiting != many {
		t.Errorf("the session says that %d wait", waiting)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	taken := map[string]string{} // the taken answer, by request
	for _, r := range inbox {
		for _, surface := range []string{"window", "browser"} {
			wg.Go(func() {
				text := surface + " " + r.Title
				var err error
				if surface == "window" {
					err = d.Answer(t.Context(), r.ID, requests.Answer{Answers: [][]string{{text}}}, surface)
				} else {
					err = d.ReplyQuestion(t.Context(), id, r.ID, [][]string{{text}}, surface)
				}
				mu.Lock()
				defer mu.Unlock()
				var late *session.RefusedError
				switch {
				case err == nil && taken[r.Title] == "":
					taken[r.Title] = text
				case err == nil:
					t.Errorf("%s: both answers were taken", r.Title)
				case !errors.As(err, &late) || late.Code != "request.resolved" || late.Params["answeredBy"] == "" || late.Params["answeredBy"] == surface:
					t.Errorf("%s: got %v, want request.resolved by the other surface than %s", r.Title, err, surface)
				}
			})
		}
	}
	wg.Wait()
	got := d.heard(id)
	if len(got) != many || len(taken) != many {
		t.Fatalf("the agent got %d answers, %d were taken", len(got), len(taken))
	}
	for i, a := range got {
		var result struct{ Answers [][]string }
		if err := json.Unmarshal(a.Result, &result); err != nil || len(result.Answers) != 1 || result.Answers[0][0] != taken[fmt.Sprint("Question ", i)] {
			t.Errorf("question %d: the agent got %s, taken was %q", i, a.Result, taken[fmt.Sprint("Question ", i)])
		}
	}
	d.sameAsRebuilt(id)
}

// An agent with too many open requests is refused further ones, and may ask again when requests have ended.
func TestOpenRequestsAreLimited(t *testing.T) {
	t.Parallel()
	const many = 256
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	var steps []step
	for i := range many + 1 {
		steps = append(steps, as(fmt.Sprint(i), asksPermission(object{"title": "Look"}, option("y", "Yes", "allow_once"))))
	}
	d.rule(rulebook.NewRule{Effect: "allow", Pattern: "git status"})
	d.rule(rulebook.NewRule{Effect: "deny", Pattern: "git push"})
	steps = append(steps, as("allowed", permit(commanding("git status"))), as("denied", permit(commanding("git push"))), as("without", permit(commanding("git status"), "allow_always")))
	d.begin(id, append(steps, step{Await: fmt.Sprint(many)}, step{Await: "allowed"}, step{Await: "denied"}, step{Await: "without"}, step{Await: "0"})...)
	d.until("all that may wait", func() bool { return d.get(id).Waiting == many })
	_, _, err := d.AskUser(t.Context(), id, []requests.Question{{Prompt: "And this?"}})
	refused(t, err, "question.too_many")
	d.answer(d.transcript(id).Requests[0], requests.Answer{OptionID: "y"})
	got := d.heard(id)
	for _, i := range []int{0, 3} { // the requests that no rule answers
		if got[i].Error == nil || got[i].Error.Code != -32603 || got[i].Error.Message != "too many requests are open" {
			t.Errorf("answer %d: got %s, %+v; want error -32603, too many requests are open", i, got[i].Result, got[i].Error)
		}
	}
	if chosen(got[1]) != "allow_once-1" || chosen(got[2]) != "reject_once-2" {
		t.Errorf("by rules: %+v", got)
	}
	if have := len(d.transcript(id).Requests); have != many+2 {
		t.Errorf("%d requests were shown", have)
	}
	d.begin(id, steps[0], step{Await: "0"})
	d.answer(d.request(id), requests.Answer{OptionID: "y"})
	if got := d.heard(id); !strings.Contains(string(got[0].Result), "selected") {
		t.Errorf("afterwards: %s %+v", got[0].Result, got[0].Error)
	}
}

// A permission without options is shown as a raw request, and is answered as a permission.
func TestPermissionWithoutOptionIsRaw(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	for _, options := range [][]object{{}, {{"optionId": true, "name": "Yes", "kind": "allow_once"}}} {
		d.begin(id, asksPermission(object{"title": "Look"}, options...))
		r := d.request(id)
		if r.Kind != "raw" {
			t.Fatalf("permission with options %v: got %+v, want it raw", options, r)
		}
		d.answer(r, requests.Answer{Action: "cancel"})
		if got := d.heard(id); string(got[0].Result) != `{"outcome":{"outcome":"cancelled"}}` {
			t.Errorf("%v: the agent hears %s, %+v", options, got[0].Result, got[0].Error)
		}
	}
	d.checkFrames(t, id)
}

// TestOptionThatIsANumberIsAnsweredByTheNumber: a person and a rule answer by the id that the agent gave.
func TestOptionThatIsANumberIsAnsweredByTheNumber(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	ask := asksPermission(commanding("git status"), object{"optionId": 0, "name": "Yes", "kind": "allow_once"}, object{"optionId": 1, "name": "No", "kind": "reject_once"})
	ask.Params["toolCall"].(object)["kind"] = "execute"
	d.begin(id, ask)
	d.answer(d.request(id), requests.Answer{OptionID: "1"})
	if got := string(d.heard(id)[0].Result); got != `{"outcome":{"optionId":1,"outcome":"selected"}}` {
		t.Errorf("answer by a person: the agent hears %s, want the option 1", got)
	}
	d.rule(rulebook.NewRule{Effect: "allow", Pattern: "git status"})
	if got := string(d.steps(id, ask)[0].Result); got != `{"outcome":{"optionId":0,"outcome":"selected"}}` {
		t.Errorf("answer by a rule: the agent hears %s, want the option 0", got)
	}
}

// A wrong value in a field that an elicitation does not need is ignored.
func TestElicitationIgnoresWrongFields(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	form, address := asksForm("Look", `{"type":7,"properties":{"a":{"type":"string"}}}`), asksURL("e", "https://example.com/")
	form.Params["url"], form.Params["elicitationId"], address.Params["requestedSchema"] = 5, []string{}, "none"
	for kind, s := range map[string]step{"form": form, "url": address} {
		d.begin(id, s)
		r := d.request(id)
		if r.Kind != kind {
			t.Errorf("%+v, want %s", r, kind)
		}
		d.answer(r, requests.Answer{Action: "cancel"})
		d.idle(id)
	}
	address.Params["url"] = 5
	if got := d.steps(id, address); got[0].Error == nil || got[0].Error.Code != -32602 {
		t.Errorf("no address: %s, %+v", got[0].Result, got[0].Error)
	}
}

// An address is opened only after a person has agreed. The agent reports what was done there, before or after the agreement.
func TestElicitationOfURLIsAgreedAndCompleted(t *testing.T) {
	complete := func(id string) step { return step{Notify: "elicitation/complete", Params: object{"elicitationId": id}} }
	d := askingDesk(t, t.TempDir())
	id := d.asking()

	d.begin(id, as("u", asksURL("e1", "https://EXAMPLE.com:443/a b?x=ü")), step{Await: "u"}, complete("nobody knows it"), complete("e1"))
	r := d.request(id)
	if r.Kind != "url" || r.Title != "Sign in" || r.URL != "https://example.com:443/a%20b?x=%C3%BC" || r.Host != "example.com:443" || r.Punycode || r.HostUnicode != "" || r.ElicitationID != "e1" {
		t.Errorf("request: got %+v, want an address of elicitation e1, escaped, with host example.com:443", r)
	}
	refused(t, d.Answer(t.Context(), r.ID, requests.Answer{}, "window"), "answer.no_action")
	d.answer(r, requests.Answer{Action: "accept"})
	if got := d.heard(id); string(got[0].Result) != `{"action":"accept"}` {
		t.Errorf("answer to the agent: got %s, want accept", got[0].Result)
	}
	after := d.requestOf(id, r.ID)
	if after.Status != "answered" || after.AnsweredBy != "window" || after.CompletedAt == nil || after.CompletedAt.Before(after.ResolvedAt.Time) {
		t.Errorf("request after its completion: got %+v, want it answered by window, completed afterwards", after)
	}
	if events := d.questionEvents(2); len(events) != 2 {
		t.Errorf("what is done there was told as an answer: %+v", events)
	}

	// The work was done before a person agreed: the request ends, and a late answer is refused with the surface that was first.
	d.begin(id, as("u", asksURL("e2", "http://xn--dskhand-7gg.example/")), complete("e2"), step{Await: "u"})
	got := d.heard(id)
	if string(got[0].Result) != `{"action":"accept"}` {
		t.Errorf("answer to the agent: got %s, want accept", got[0].Result)
	}
	list := d.transcript(id).Requests
	last := list[len(list)-1]
	if last.Status != "answered" || last.AnsweredBy != "agent" || last.CompletedAt == nil || !last.Punycode || last.HostUnicode == "" || last.HostUnicode == last.Host {
		t.Errorf("request that the agent completed: got %+v, want it answered by agent, its host told as Punycode and as Unicode", last)
	}
	err := d.Answer(t.Context(), last.ID, requests.Answer{Action: "decline"}, "window")
	refused(t, err, "request.resolved")
	var late *session.RefusedError
	if errors.As(err, &late); late == nil || late.Params["answeredBy"] != "agent" {
		t.Errorf("late answer: got %v, want it refused as answered by agent", err)
	}

	for name, address := range map[string]string{
		"a script": "javascript:alert(1)", "a file": "file:///etc/passwd", "no address": "::", "no host": "https:///x", "a user": "https://example.com@evil.example/",
		"a secret": "https://example.com/?t=ghp_0123456789012345678901234567890123456789", "a number": "http://0x7f.1/", "a backslash": `https://example.com\@evil.example`,
	} {
		before := len(kinds(d.transcript(id), "notice"))
		got := d.steps(id, asksURL("e3", address))
		tr := d.transcript(id)
		if got[0].Error == nil || got[0].Error.Code != -32602 || len(kinds(tr, "notice")) != before+1 || len(tr.Requests) != len(list) {
			t.Errorf("%s: %s %+v, %d requests", name, got[0].Result, got[0].Error, len(tr.Requests))
		}
	}
	for action, want := range map[string]string{"decline": `{"action":"decline"}`, "cancel": `{"action":"cancel"}`} {
		d.begin(id, asksURL("e4", "https://example.com/"))
		d.answer(d.request(id), requests.Answer{Action: action})
		if got := d.heard(id); string(got[0].Result) != want {
			t.Errorf("the agent hears %s", got[0].Result)
		}
	}
	d.begin(id, as("u", asksURL("e5", "https://example.com/")), step{Cancel: "u"}, step{Await: "u"})
	if got := d.heard(id); string(got[0].Result) != `{"action":"cancel"}` {
		t.Errorf("withdrawn: %s", got[0].Result)
	}
	d.checkFrames(t, id)
	d.sameAsRebuilt(id)
}

func (d *desk) requestOf(session, id string) (found requests.Request) {
	d.t.Helper()
	for _, r := range d.transcript(session).Requests {
		if r.ID == id {
			found = r
		}
	}
	return found
}

// An elicitation of an unknown mode is refused, and a form with unknown fields is shown raw.
func TestElicitationOfUnknownKindIsRefusedOrRaw(t *testing.T) {
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	got := d.steps(id, step{Ask: "elicitation/create", Params: object{"mode": "hologram", "message": "Look"}})
	if got[0].Error == nil || got[0].Error.Code != -32602 || len(kinds(d.transcript(id), "notice")) != 1 {
		t.Errorf("elicitation of an unknown mode: got %+v, want error -32602 and one notice", got)
	}
	d.begin(id, asksForm("Look", `{"type":"object","properties":{"view":{"type":"hologram"}}}`))
	r := d.request(id)
	if r.Kind != "raw" || !strings.Contains(string(r.Raw), "hologram") {
		t.Errorf("request of an unknown field: got %+v, want it raw", r)
	}
	refused(t, d.Answer(t.Context(), r.ID, requests.Answer{Action: "accept"}, "window"), "answer.only_cancel")
	d.answer(r, requests.Answer{Action: "cancel"})
	if got := d.heard(id); string(got[0].Result) != `{"action":"cancel"}` {
		t.Errorf("the agent hears %s", got[0].Result)
	}
}
