package requests_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"deskhand/backend/form"
	"deskhand/backend/lifecycle"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/requests"
	"deskhand/backend/storetest"
)

func asIs(text string) string { return text }

// question returns a waiting request with the questions of an agent's params.
func question(t *testing.T, params string) *requests.Pending {
	t.Helper()
	p := &requests.Pending{Method: "_sandboxagent/session/request_question", Request: requests.Request{ID: "r", Status: lifecycle.StatusRequested}}
	if !p.ReadQuestion(json.RawMessage(params), asIs) {
		t.Fatalf("ReadQuestion(%s): got false, want a question", params)
	}
	return p
}

func TestRespondChecksTheAnswerOfEachKind(t *testing.T) {
	t.Parallel()
	permission := requests.Request{Kind: requests.KindPermission, Options: []requests.Option{{ID: "yes", Kind: "allow_once"}, {ID: "no", Kind: "reject_once"}}}
	forms := requests.Request{Kind: requests.KindForm, Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}
	address := requests.Request{Kind: requests.KindURL, URL: "https://example.org/", Host: "example.org"}
	asked := requests.Request{Kind: requests.KindQuestion, Questions: []requests.Question{{Prompt: "Which?", Options: []form.QuestionOption{{ID: "a"}, {ID: "b"}}}}}
	raw := requests.Request{Kind: requests.KindRaw}
	for name, tc := range map[string]struct {
		request requests.Request
		answer  requests.Answer
		status  string
		result  string
		refused string
	}{
		"permission allowed":  {permission, requests.Answer{OptionID: "yes"}, lifecycle.StatusAnswered, `{"outcome":{"optionId":"yes","outcome":"selected"}}`, ""},
		"permission rejected": {permission, requests.Answer{OptionID: "no"}, lifecycle.StatusRejected, `{"outcome":{"optionId":"no","outcome":"selected"}}`, ""},
		"permission, a number": {
			requests.Request{Kind: requests.KindPermission, Options: []requests.Option{{ID: "1", Number: true, Kind: "allow_once"}}},
			requests.Answer{OptionID: "1"},
			lifecycle.StatusAnswered, `{"outcome":{"optionId":1,"outcome":"selected"}}`, "",
		},
		"permission unknown":  {permission, requests.Answer{OptionID: "maybe"}, "", "", "answer.unknown_option"},
		"form accepted":       {forms, requests.Answer{Action: "accept", Content: json.RawMessage(`{"n":1}`)}, lifecycle.StatusAnswered, `{"action":"accept","content":{"n":1}}`, ""},
		"form declined":       {forms, requests.Answer{Action: "decline"}, lifecycle.StatusRejected, `{"action":"decline"}`, ""},
		"form unfit":          {forms, requests.Answer{Action: "accept", Content: json.RawMessage(`{"n":"x"}`)}, "", "", "answer.invalid"},
		"address opened":      {address, requests.Answer{Action: "accept"}, lifecycle.StatusAnswered, `{"action":"accept"}`, ""},
		"address without act": {address, requests.Answer{OptionID: "accept"}, "", "", "answer.no_action"},
		"question answered":   {asked, requests.Answer{Answers: [][]string{{"b"}}}, lifecycle.StatusAnswered, `{"answers":[["b"]],"status":"answered"}`, ""},
		"question rejected":   {asked, requests.Answer{Reject: true}, lifecycle.StatusRejected, `{"status":"rejected"}`, ""},
		"question unknown":    {asked, requests.Answer{Answers: [][]string{{"c"}}}, "", "", "answer.unknown_option"},
		"question too many":   {asked, requests.Answer{Answers: [][]string{{"a"}, {"b"}}}, "", "", "answer.count"},
		"raw dismissed":       {raw, requests.Answer{Action: "cancel"}, lifecycle.StatusRejected, "null", ""},
		"raw allowed":         {raw, requests.Answer{Action: "accept"}, "", "", "answer.only_cancel"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &requests.Pending{Request: tc.request}
			status, result, err := p.Respond(tc.answer)
			if refused, is := errors.AsType[*refusal.Error](err); is != (tc.refused != "") || is && refused.Code != tc.refused {
				t.Fatalf("Respond(%+v): got error %v, want code %q", tc.answer, err, tc.refused)
			}
			if err != nil {
				return
			}
			if got := string(record.JSON(result)); status != tc.status || got != tc.result {
				t.Errorf("Respond(%+v): got %s and %s, want %s and %s", tc.answer, status, got, tc.status, tc.result)
			}
		})
	}
}

// TestReadQuestionTakesTextsAndFlagsOfOtherTypes reads a question of a library that tells texts from numbers by their look.
func TestReadQuestionTakesTextsAndFlagsOfOtherTypes(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		`{"prompt":"Which?","options":[[1,"One"],[2,"Two"]],"multiSelect":"true","allowFreeText":1}`: `[{"prompt":"Which?","options":[{"id":"1","label":"One"},{"id":"2","label":"Two"}],"multiSelect":true,"allowFreeText":true}]`,
		`{"question":2024,"options":[1,{"id":2,"label":3,"description":4}],"multiSelect":"false"}`:   `[{"prompt":"2024","options":[{"id":"1","label":"1"},{"id":"2","label":"3","description":"4"}]}]`,
	} {
		if got := string(record.JSON(question(t, params).Questions)); got != want {
			t.Errorf("ReadQuestion(%s):\n got %s\nwant %s", params, got, want)
		}
	}
}

func TestReplyWaitsForTheLastQuestion(t *testing.T) {
	t.Parallel()
	p := question(t, `{"questions":[{"prompt":"One?","options":["a","b"]},{"prompt":"Two?"}]}`)
	if _, _, err := p.Reply(1, [][]string{{"c"}}, "api"); err == nil {
		t.Error("Reply with an unknown option: got no error, want one")
	}
	if _, whole, err := p.Reply(1, [][]string{{"a"}}, "api"); whole || err != nil {
		t.Errorf("Reply to the first question: got whole %t and %v, want false and no error", whole, err)
	}
	if _, _, err := p.Reply(1, [][]string{{"b"}}, "api"); err == nil {
		t.Error("a second Reply to the first question: got no error, want one")
	}
	a, whole, err := p.Reply(2, [][]string{{"free words"}}, "api")
	if !whole || err != nil || !slices.EqualFunc(a.Answers, [][]string{{"a"}, {"free words"}}, slices.Equal[[]string]) {
		t.Errorf("Reply to the last question: got %+v, whole %t and %v, want both answers", a, whole, err)
	}
}

func TestQuestionIDsOfTheAgent(t *testing.T) {
	t.Parallel()
	for params, want := range map[string][]string{
		`{"prompt":"One?"}`:                                                      {"r"},
		`{"questionId":"colour","prompt":"One?"}`:                                {"colour"},
		`{"questionId":7,"prompt":"One?"}`:                                       {"7"},
		`{"questions":[{"prompt":"One?"},{"prompt":"Two?"}]}`:                    {"r.1", "r.2"},
		`{"questionId":"q\u0007","prompt":"a control letter"}`:                   {"r"},
		`{"questions":[{"questionId":"own","prompt":"One?"},{"prompt":"Two?"}]}`: {"own", "r.2"},
	} {
		var got []string
		for _, q := range requests.QuestionsOf([]requests.Request{question(t, params).Request}) {
			got = append(got, q.QuestionID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("ids of the questions of %s: got %q, want %q", params, got, want)
		}
	}
}

func TestLibraryFindsRequests(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, t.TempDir())
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	made := func(id, agentsID, status string) *requests.Request {
		return &requests.Request{
			ID: id, Session: "s", Kind: requests.KindQuestion, QuestionID: agentsID, Status: status, CreatedAt: record.Time{Time: time.Now()},
			Questions: []requests.Question{{Prompt: "Which?"}},
		}
	}
	list := []*requests.Request{made("r1", "again", lifecycle.StatusAnswered), made("r2", "again", lifecycle.StatusRequested), made("r3", "twice", lifecycle.StatusRequested), made("r4", "twice", lifecycle.StatusRequested)}
	err := db.WriteSync(t.Context(), func(tx *sql.Tx) error {
		if _, err := tx.Exec(`INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES ('w', '', '/', 0, 0, 0, 0)`); err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft, acp_session_id,
			protocol_version, generation, facts, exit, created_at, updated_at, archived_at)
			VALUES ('s', '', 'w', '/', 'mock', '', '', '[]', 0, 0, '', '', 1, 0, '{}', '', 0, 0, 0)`); err != nil {
			return err
		}
		return requests.Save(t.Context(), tx, slices.Values(list))
	})
	if err != nil {
		t.Fatal(err)
	}
	stored := requests.New(db)
	if got, err := stored.Get(t.Context(), "r1"); err != nil || got.Status != lifecycle.StatusAnswered {
		t.Errorf("Get(r1): got %+v and %v, want the answered request", got, err)
	}
	if _, err := stored.Get(t.Context(), "none"); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("Get(none): got %v, want ErrNotFound", err)
	}
	if got, err := stored.Waiting(t.Context()); err != nil || len(got) != 3 {
		t.Errorf("Waiting: got %d requests and %v, want 3", len(got), err)
	}
	if got, err := stored.Named(t.Context(), "r"); err != nil || len(got) != 4 || got[0].ID != "r4" {
		t.Errorf("Named(r): got %+v and %v, want 4 requests, r4 first", got, err)
	}
	for id, want := range map[string]string{"again": "r2", "r1": "r1", "r4": "r4"} {
		if got, _, err := stored.FindQuestion(t.Context(), "s", id); err != nil || got.ID != want {
			t.Errorf("FindQuestion(%s): got %s and %v, want %s", id, got.ID, err, want)
		}
	}
	if _, _, err := stored.FindQuestion(t.Context(), "s", "none"); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("FindQuestion(none): got %v, want ErrNotFound", err)
	}
	if _, _, err := stored.FindQuestion(t.Context(), "s", "twice"); err == nil {
		t.Error("FindQuestion of an id that two waiting questions have: got no error, want one")
	}
}
