package editor

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Two options, and the forms in which agents ask to choose between them.
const (
	twoOptions  = `"options":[{"id":"r","label":"Red","description":"Like fire"},{"id":"b","label":"Blue"}]`
	oneOfForm   = `{"kind":"form","title":"Colour","schema":{"type":"object","required":["c"],"properties":{"c":{"type":"string","title":"Which?","oneOf":[{"const":"r","title":"Red"},{"const":"b","title":"Blue"}]}}}}`
	choiceOfTwo = `{"kind":"permission","title":"Which?","choice":true,"options":[{"id":"p","name":"Postgres","kind":"allow_once"},{"id":"s","name":"SQLite","kind":"allow_always"},{"id":"n","name":"Neither","kind":"reject_once"}]}`
	withOwn     = `{"kind":"form","title":"Colour","schema":{"type":"object","required":["c"],"properties":{"c":{"type":"string","enum":["r","b"],"enumNames":["Red","Blue"]},"c_custom":{"type":"string"}}}}`
)

// TestRequestsAtTheEditor sends each kind of request, in each form, to an editor with forms and to an editor without forms, and checks the
// editor's message and Deskhand's answer.
func TestRequestsAtTheEditor(t *testing.T) {
	question := func(more string) string {
		return `{"kind":"question","title":"Colour","questions":[{"prompt":"Which?",` + twoOptions + more + `}]}`
	}
	accept := func(content string) string { return `{"action":"accept","content":` + content + `}` }
	choose := func(option string) string { return `{"outcome":{"outcome":"selected","optionId":"` + option + `"}}` }
	for name, tc := range map[string]struct {
		request string
		forms   bool
		asks    []string // expected in the message to the editor
		without []string
		answer  string
		want    string // Deskhand's answer
	}{
		"question, forms": {
			question(""), true, []string{"elicitation/create", `"const":"r"`, `"title":"Red"`, `"description":"Like fire"`, `"required":["answer1"]`}, []string{"_own"}, accept(`{"answer1":"b"}`), `{"answers":[["b"]]}`,
		},
		"question with other words, forms": {
			question(`,"allowFreeText":true`), true, []string{`"const":"r"`, `"const":"b"`, "answer1_own", `"required":[]`}, nil, accept(`{"answer1":"b"}`), `{"answers":[["b"]]}`,
		},
		"question with other words, forms, answered with these": {
			question(`,"allowFreeText":true`), true, nil, nil, accept(`{"answer1":"b","answer1_own":"green"}`), `{"answers":[["green"]]}`,
		},
		"question with other words, forms, only these": {
			question(`,"allowFreeText":true`), true, nil, nil, accept(`{"answer1_own":"green"}`), `{"answers":[["green"]]}`,
		},
		"question of several, forms": {
			question(`,"multiSelect":true`), true, []string{`"type":"array"`, `"minItems":1`, `"const":"r"`}, nil, accept(`{"answer1":["r","b"]}`), `{"answers":[["r","b"]]}`,
		},
		"question of several with other words, forms": {
			question(`,"multiSelect":true,"allowFreeText":true`), true, []string{`"type":"array"`, "answer1_own"}, []string{"minItems"}, accept(`{"answer1":["r"],"answer1_own":"green"}`), `{"answers":[["r","green"]]}`,
		},
		"question without options, forms": {
			`{"kind":"question","title":"Name","questions":[{"prompt":"Which?","options":[],"allowFreeText":true}]}`, true, []string{`"minLength":1`}, []string{"oneOf"}, accept(`{"answer1":"Ada"}`), `{"answers":[["Ada"]]}`,
		},
		"two questions, forms": {
			`{"kind":"question","title":"Both","questions":[{"prompt":"A?",` + twoOptions + `},{"prompt":"B?",` + twoOptions + `,"allowFreeText":true}]}`, true,
			[]string{"answer1", "answer2", "answer2_own"},
			[]string{"answer1_own"},
			accept(`{"answer1":"r","answer2":"b"}`), `{"answers":[["r"],["b"]]}`,
		},
		"question, forms, declined": {question(""), true, nil, nil, `{"action":"decline"}`, `{"reject":true}`},

		"question": {
			question(""), false, []string{"session/request_permission", `"name":"Red: Like fire"`, `"name":"Blue"`, "Decline", "Answer it in Deskhand"}, []string{"otherwise"}, choose("1"), `{"answers":[["b"]]}`,
		},
		"question with other words": {
			question(`,"allowFreeText":true`), false, []string{`"name":"Blue"`, "Answer otherwise, in Deskhand"}, nil, choose("0"), `{"answers":[["r"]]}`,
		},
		"question, declined":  {question(""), false, nil, nil, choose(optionDecline), `{"reject":true}`},
		"question of several": {question(`,"multiSelect":true`), false, []string{"Answer it in Deskhand."}, []string{"Red"}, choose(optionDecline), `{"reject":true}`},

		"form, forms": {oneOfForm, true, []string{"elicitation/create", `"oneOf":[{"const":"r"`}, nil, accept(`{"c":"b"}`), `{"action":"accept","content":{"c":"b"}}`},
		"form of one choice": {
			oneOfForm, false, []string{"session/request_permission", `"name":"Red"`, `"name":"Blue"`, "Which?", "Answer it in Deskhand"}, []string{"otherwise"}, choose("1"), `{"action":"accept","content":{"c":"b"}}`,
		},
		"form of one choice and other words": {
			withOwn, false, []string{`"name":"Red"`, `"name":"Blue"`, "Answer otherwise, in Deskhand"}, nil, choose("0"), `{"action":"accept","content":{"c":"r"}}`,
		},
		"form of yes or no": {
			`{"kind":"form","title":"Sure?","schema":{"properties":{"ok":{"type":"boolean"}},"required":["ok"]}}`, false, []string{`"name":"Yes"`, "Sure?"}, nil, choose("0"), `{"action":"accept","content":{"ok":true}}`,
		},
		"form, declined":         {oneOfForm, false, nil, nil, choose(optionDecline), `{"action":"decline"}`},
		"form of text":           {`{"kind":"form","title":"Name","schema":{"properties":{"n":{"type":"string"}},"required":["n"]}}`, false, []string{"Answer it in Deskhand."}, nil, choose(optionDecline), `{"action":"decline"}`},
		"form of two choices":    {`{"kind":"form","title":"Two","schema":{"properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"string","enum":["y"]}}}}`, false, []string{"Answer it in Deskhand."}, nil, choose(optionDecline), `{"action":"decline"}`},
		"form that is no schema": {`{"kind":"form","title":"X","schema":5}`, false, []string{"Answer it in Deskhand."}, nil, choose(optionDecline), `{"action":"decline"}`},

		"permission": {
			`{"kind":"permission","title":"Run","options":[{"id":"once","name":"Once","kind":"allow_once"}]}`, false, []string{"session/request_permission", `"optionId":"once"`}, nil, choose("once"), `{"optionId":"once"}`,
		},
		"permission that is not here as a whole": {
			`{"kind":"permission","title":"Run","clipped":true,"options":[{"id":"no","name":"No","kind":"reject_once"},{"id":"yes","name":"Yes","kind":"allow_once"}]}`,
			false,
			[]string{"not all of it is shown", `"optionId":"no"`, "Look at it in Deskhand"},
			[]string{`"optionId":"yes"`},
			choose("no"), `{"optionId":"no"}`,
		},
		"permission that is a choice": {
			choiceOfTwo, true, []string{
				`"name":"Postgres (allows once)"`, `"name":"SQLite (allows always)"`, `"kind":"reject_once","name":"Neither"`, `"kind":"allow_once","name":"Look at it in Deskhand"`,
			}, nil, choose("s"), `{"optionId":"s"}`,
		},
		"permission that is a choice, left": {
			`{"kind":"permission","title":"Which?","choice":true,"options":[{"id":"a","name":"A","kind":"allow_once"},{"id":"b","name":"B","kind":"other"}]}`, false,
			[]string{`"name":"A (allows once)"`, `"name":"B"`, "Leave it to Deskhand"},
			nil, choose(optionLeave), `null`,
		},
		"address": {`{"kind":"url","title":"Sign in","url":"https://x.test/"}`, false, []string{"Answer it in Deskhand."}, nil, choose(optionDecline), `{"action":"decline"}`},
		"raw":     {`{"kind":"raw","title":"x/y","raw":{}}`, true, []string{"Answer it in Deskhand."}, nil, choose(optionDecline), `{"action":"cancel"}`},
		"trust": {
			`{"kind":"trust","title":"Start?","options":[{"id":"no","name":"Leave out","kind":"reject_once"},{"id":"yes","name":"Yes","kind":"allow_once"}]}`, true, []string{`"optionId":"no"`}, []string{`"optionId":"yes"`}, choose("no"), `{"optionId":"no"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var r asking
			if err := json.Unmarshal([]byte(tc.request), &r); err != nil {
				t.Fatal(err)
			}
			r.ID = "r1"
			s := &shown{mirror: &mirror{takes: takes{forms: tc.forms}}}
			method, params, read := s.form(r)
			asked, err := json.Marshal(params)
			if err != nil {
				t.Fatal(err)
			}
			message := fmt.Sprintf("%s %s", method, asked)
			for _, part := range tc.asks {
				if !strings.Contains(message, part) {
					t.Errorf("the editor is asked without %s: %s", part, message)
				}
			}
			for _, part := range tc.without {
				if strings.Contains(message, part) {
					t.Errorf("the editor is asked with %s: %s", part, message)
				}
			}
			got, err := json.Marshal(read(json.RawMessage(tc.answer)))
			if err != nil || string(got) != tc.want {
				t.Errorf("answer %s: got %s (%v), want %s", tc.answer, got, err, tc.want)
			}
		})
	}
}

// TestEditorThatAnswersByItselfChoosesNothing answers as editors do that are set to allow, or to reject, whatever they are asked: with the
// first option of the kind.
func TestEditorThatAnswersByItselfChoosesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		request  string
		rejected string // Deskhand's answer when the editor rejects
	}{
		"permission": {choiceOfTwo, `{"optionId":"n"}`},
		"permission without a no": {
			`{"kind":"permission","title":"Which?","choice":true,"options":[{"id":"a","name":"A","kind":"allow_once"},{"id":"b","name":"B","kind":"other"}]}`, `null`,
		},
		"question":           {`{"kind":"question","title":"Colour","questions":[{"prompt":"Which?",` + twoOptions + `}]}`, `{"reject":true}`},
		"question, own text": {`{"kind":"question","title":"Colour","questions":[{"prompt":"Which?","allowFreeText":true,` + twoOptions + `}]}`, `{"reject":true}`},
		"form":               {oneOfForm, `{"action":"decline"}`},
		"form, own text":     {withOwn, `{"action":"decline"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var r asking
			if err := json.Unmarshal([]byte(tc.request), &r); err != nil {
				t.Fatal(err)
			}
			r.ID = "r1"
			s := &shown{mirror: &mirror{}}
			_, params, read := s.form(r)
			first := map[string]string{}
			for _, o := range params["options"].([]any) {
				o := o.(map[string]any)
				if kind := o["kind"].(string); first[kind] == "" {
					first[kind] = o["optionId"].(string)
				}
			}
			if first["allow_once"] != optionShow || first["allow_always"] != "" {
				t.Errorf("form(%s): got the first options %v, want %q as allow_once and no allow_always", tc.request, first, optionShow)
			}
			result := `{"outcome":{"outcome":"selected","optionId":"` + first["reject_once"] + `"}}`
			if got, err := json.Marshal(read(json.RawMessage(result))); err != nil || string(got) != tc.rejected {
				t.Errorf("form(%s), answered with %s: got %s, error %v, want %s", tc.request, result, got, err, tc.rejected)
			}
		})
	}
}
