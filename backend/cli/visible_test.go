package cli

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"deskhand/backend"
)

func TestUnseenCharactersAreWrittenOut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ visible, revealed string }{
		"a\tb\nc":                {"a\tb\nc", "a\tb\nc"},
		"a\r\nb\rc":              {"a\nb[U+000D]c", "a[U+000D]\nb[U+000D]c"},
		"\x1b[31mred\u009b0m":    {"[U+001B][31mred[U+009B]0m", "[U+001B][31mred[U+009B]0m"},
		"rm\u200b -r\u2060f":     {"rm[U+200B] -r[U+2060]f", "rm[U+200B] -r[U+2060]f"},
		"a\u202eb\u2066c":        {"a[U+202E]b[U+2066]c", "a[U+202E]b[U+2066]c"},
		"tag\U000e0061":          {"tag[U+E0061]", "tag[U+E0061]"},
		"a\u3164b\u115f\u00ad":   {"a[U+3164]b[U+115F][U+00AD]", "a[U+3164]b[U+115F][U+00AD]"},
		"line\u2028two":          {"line[U+2028]two", "line[U+2028]two"},
		"می\u200cخواهم 👨\u200d👩": {"می\u200cخواهم 👨\u200d👩", "می[U+200C]خواهم 👨[U+200D]👩"},
		"a\u200db 👍\u200d":       {"a[U+200D]b 👍[U+200D]", "a[U+200D]b 👍[U+200D]"},
		"❤\ufe0f x\u00a0y":       {"❤\ufe0f x\u00a0y", "❤\ufe0f x[U+00A0]y"},
	} {
		if got := visible(text); got != want.visible {
			t.Errorf("visible(%q) = %q, want %q", text, got, want.visible)
		}
		if got := backend.Reveal(text); got != want.revealed {
			t.Errorf("Reveal(%q) = %q, want %q", text, got, want.revealed)
		}
	}
}

func TestJSONKeepsWhatItEscapes(t *testing.T) {
	t.Parallel()
	const text = "a\u202eb\u009b\u200d\U000e0061 ü"
	var out strings.Builder
	if err := printJSON(&out, map[string]string{"t": text}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsFunc(out.String(), hidden) {
		t.Errorf("printJSON leaves what nobody sees: %q", out.String())
	}
	var back map[string]string
	if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back["t"] != text {
		t.Errorf("read again it is %q (%v), want %q", back["t"], err, text)
	}
}

func TestOptionNumberComesBeforeItsID(t *testing.T) {
	t.Parallel()
	r := backend.Request{Kind: "permission", Options: []backend.RequestOption{
		{ID: "2", Name: "Reject", Kind: "reject_once"}, {ID: "1", Name: "Yes", Kind: "allow_once"}, {ID: "7", Name: "1", Kind: "allow_always"},
	}}
	for option, want := range map[string]string{"1": "2", "2": "1", "3": "7", "7": "7", "reject": "2"} {
		c := inboxAnswer{Option: option}
		body, err := c.answer(r)
		if err != nil || body["optionId"] != want {
			t.Errorf("--option %s answers with the id %v (%v), want %s", option, body["optionId"], err, want)
		}
	}
	var told strings.Builder
	(&Program{Stderr: &told}).describe(t.Context(), nil, r)
	for _, row := range []string{"1  Reject (rejects once), id 2", "2  Yes (allows once), id 1", "3  1 (allows always), id 7"} {
		if !strings.Contains(told.String(), row) {
			t.Errorf("the list does not say %q:\n%s", row, told.String())
		}
	}
	q := backend.Question{Options: []backend.QuestionOption{{ID: "2", Label: "Two"}, {ID: "1", Label: "One"}}}
	if got, err := choices(q, "2"); err != nil || len(got) != 1 || got[0] != "1" {
		t.Errorf("--choose 2 chooses %v (%v), want the second, whose id is 1", got, err)
	}
}

// TestOptionsOfOneNameAreChosenByNumber: the name of several options chooses none of them, since their effects may differ.
func TestOptionsOfOneNameAreChosenByNumber(t *testing.T) {
	t.Parallel()
	r := backend.Request{Kind: "permission", Options: []backend.RequestOption{
		{ID: "a", Name: "Reject", Kind: "allow_always"}, {ID: "b", Name: "Reject", Kind: "allow_once"}, {ID: "c", Name: "Reject", Kind: "reject_once"}, {ID: "d", Kind: "reject_always"},
	}}
	for option, want := range map[string]string{"Reject": "", "reject": "", "3": "c", "b": "b", "": ""} {
		c := inboxAnswer{Option: option}
		body, err := c.answer(r)
		if want == "" && err == nil || want != "" && body["optionId"] != want {
			t.Errorf("--option %q answers with %v (%v), want %q", option, body["optionId"], err, want)
		}
	}
	c := inboxAnswer{Decline: true}
	if body, err := c.answer(r); err != nil || body["optionId"] != "c" {
		t.Errorf("--decline answers with %v (%v), want c", body["optionId"], err)
	}
}

// late answers every call as one that came too late.
type late struct{ status string }

func (l late) RoundTrip(*http.Request) (*http.Response, error) {
	body := `{"status":409,"code":"request.resolved","params":{"status":"` + l.status + `","answeredBy":"window"}}`
	return &http.Response{StatusCode: http.StatusConflict, Header: http.Header{"Content-Type": {"application/problem+json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// TestPromptIsNotUnmetByWhatEndedElsewhere: a request that another surface answered, or that the agent withdrew, needs no answer: the turn
// ends by its stop reason.
func TestPromptIsNotUnmetByWhatEndedElsewhere(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"answered", "cancelled"} {
		turn := &terminalTurn{p: &Program{Stderr: io.Discard}, api: &api{http: &http.Client{Transport: late{status}}}, approve: approveNobody, outcome: &backend.Turn{}}
		turn.outcome.StopReason = "end_turn"
		r := backend.Request{ID: "r", Kind: "permission", Options: []backend.RequestOption{{ID: "no", Kind: "reject_once"}}}
		if err := errors.Join(turn.decide(t.Context(), r), turn.result()); err != nil {
			t.Errorf("%s elsewhere: %v, want the end of the turn", status, err)
		}
	}
}

// TestPromptIsNotUnmetByWhatNobodyKnows: a request of the agent that can only be dismissed needs no answer, whatever --approve says.
func TestPromptIsNotUnmetByWhatNobodyKnows(t *testing.T) {
	t.Parallel()
	for _, approve := range []string{approveNobody, approveOnce, approveNever} {
		var said strings.Builder
		turn := &terminalTurn{p: &Program{Stderr: &said}, api: &api{http: &http.Client{Transport: accepting{}}}, approve: approve, outcome: &backend.Turn{}}
		turn.outcome.StopReason = "end_turn"
		r := backend.Request{ID: "r", Kind: "raw", Title: "vendor/ask"}
		err := errors.Join(turn.decide(t.Context(), r), turn.result())
		if err != nil || !strings.Contains(said.String(), "dismissed, for Deskhand does not know what it asks: vendor/ask") {
			t.Errorf("decide(%+v) with --approve %s: got error %v, said %q, want the end of the turn, and that it was dismissed", r, approve, err, said.String())
		}
	}
}

// accepting answers every request to the API.
type accepting struct{}

func (accepting) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
}
