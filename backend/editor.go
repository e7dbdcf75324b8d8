package backend

import (
	"context"
	"io"

	"deskhand/backend/editor"
)

// EditorConfig configures a conversation with an editor.
type EditorConfig = editor.Config

// ServeEditor serves an editor as its agent until in ends. Sessions that the editor begins are sessions of Deskhand.
func ServeEditor(ctx context.Context, cfg EditorConfig, in io.Reader, out io.Writer) error {
	return editor.Serve(ctx, cfg, in, out)
}
