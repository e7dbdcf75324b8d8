package session_test

import (
	"strings"
	"testing"

	"deskhand/backend/requests"
	"deskhand/backend/session"
)

// A question of Qwen that comes as session/request_permission is shown as a question, and its answers are sent beside the outcome.
func TestQuestionThatComesAsPermission(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const ask = `read l; echo '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","title":"Ask user",
		"_meta":{"qwenInteractionKind":"user_question","qwenQuestions":[
		{"question":"Which colour?","header":"Colour","options":[{"label":"Red","description":"warm"},{"label":"Blue","description":"cold"}],"multiSelect":false},
		{"question":"Which sizes?","header":"Size","options":[{"label":"S"},{"label":"M"}],"multiSelect":true}]}},
		"options":[{"optionId":"proceed_once","name":"Submit","kind":"allow_once"},{"optionId":"cancel","name":"Cancel","kind":"reject_once"}]}}' | tr -d '\n\t'; echo
		read l; echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'$(echo "$l" | tr '"' "'")'"}}}}'
		echo '{"jsonrpc":"2.0","id":'$id',"result":{"stopReason":"end_turn"}}'
		`
	custom(t, dir, map[string]string{"asks": `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
		id=3; ` + ask + `id=4; ` + ask + `cat >/dev/null`})
	d := open(t, dir)
	s, err := d.Create(t.Context(), session.New{Agent: "asks", Cwd: d.work})
	if err != nil {
		t.Fatal(err)
	}
	d.prompt(s.ID, "go")
	r := d.request(s.ID)
	if r.Kind != "question" || r.Title != "Which colour?" || len(r.Options) != 0 || len(r.Questions) != 2 || r.Questions[0].Options[1].Label != "Blue" ||
		!r.Questions[1].MultiSelect || !r.Questions[0].AllowFreeText {
		t.Fatalf("request: got %+v, want a question of 2, the first with free text, the second of several choices, no options", r)
	}
	d.answer(r, requests.Answer{Answers: [][]string{{"Blue"}, {"S", "M"}}})
	said := textOf(d.idle(s.ID), "agent")
	for _, part := range []string{"'optionId':'proceed_once'", "'answers':{'0':'Blue','1':'S, M'}"} {
		if !strings.Contains(said, part) {
			t.Errorf("no %s in %s", part, said)
		}
	}
	d.prompt(s.ID, "again")
	d.answer(d.request(s.ID), requests.Answer{Reject: true})
	if said = textOf(d.idle(s.ID), "agent"); !strings.Contains(said, "'optionId':'cancel'") {
		t.Errorf("the refusal is %s", said)
	}
	d.sameAsRebuilt(s.ID)
}
