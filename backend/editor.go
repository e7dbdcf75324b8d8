package backend

import (
	"context"
	"io"

	"deskhand/backend/editor"
)

// EditorConfig is what a conversation with an editor stands on.
type EditorConfig = editor.Config

// ServeEditor is an agent for an editor, until the editor has said all: what it begins is one of Deskhand's sessions.
func ServeEditor(ctx context.Context, cfg EditorConfig, in io.Reader, out io.Writer) error {
	return editor.Serve(ctx, cfg, in, out)
}
