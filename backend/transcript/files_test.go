package transcript

import "testing"

// What the agent echoes of a prompt in the text form is the text that it got, and is not shown beside what was written; how the files went
// is told with that.
func TestTheEchoOfATextFormIsNotShown(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("look")
	sent := "look\n\nAttachments:\n- /a\n"
	s.note(Note{Note: NoteComposed, Turn: "t", Text: sent, Attachments: []Attachment{{ID: "1", Filename: "a", Travels: "text"}}})
	s.chunk("user_message_chunk", "", "look\n\nAttach")
	s.chunk("user_message_chunk", "", "ments:\n- /a\n")
	s.chunk("agent_message_chunk", "", "Done")
	s.note(Note{Note: NoteComposed, Turn: "another", Attachments: []Attachment{{ID: "2"}}})
	if e := s.fold.asking; e == nil || len(e.Attachments) != 1 || e.Attachments[0].Travels != "text" {
		t.Errorf("prompt after a note of another turn: got %+v, want its own attachment, as text", e)
	}
	s.want("user: look", "agent: Done")
}
