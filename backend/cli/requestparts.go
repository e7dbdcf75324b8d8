package cli

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"deskhand/backend"
)

// atTerminal limits the part of a long request that a terminal shows. A pipe gets the whole request.
const atTerminal = 256 << 10 // bytes

// showParts prints the full content of a permission page by page, since the permission's record only holds its beginning.
func (t *terminalTurn) showParts(ctx context.Context, id string) error {
	var list struct {
		Items []backend.RequestPart `json:"items"`
	}
	route := "requests/" + url.PathEscape(id) + "/parts"
	if err := t.api.call(ctx, "GET", route, nil, &list); err != nil {
		return err
	}
	room := -1 // no limit
	if isTerminal(t.p.Stderr) {
		room = atTerminal
	}
	for i, part := range list.Items {
		t.aside("  %s", partHeading(part))
		t.p.say("      | ")
		for offset := 0; ; {
			if room == 0 {
				t.aside("  ! not all of it is shown: %d more bytes of this %s. All of it: deskhand inbox answer %s 2>&1 | less", part.Size-offset, part.Kind, id)
				break
			}
			var page backend.PartPage
			query := "?limit=65536&offset=" + strconv.Itoa(offset)
			if err := t.api.call(ctx, "GET", route+"/"+strconv.Itoa(i)+query, nil, &page); err != nil {
				return err
			}
			room = max(room-len(page.Text), min(room, 0))
			t.p.say("%s", strings.ReplaceAll(backend.Reveal(page.Text), "\n", "\n      | "))
			if offset = page.Next; offset == 0 {
				t.p.say("\n")
				break
			}
		}
	}
	return nil
}

// partHeading names a part and its true counts.
func partHeading(p backend.RequestPart) string {
	heading := fmt.Sprintf("%s, %d letters in %d lines", p.Kind, p.Letters, p.Lines)
	if p.Kind == "diff" {
		heading = fmt.Sprintf("diff of %s, %d lines added, %d removed", barred(p.Path), p.Added, p.Removed)
	}
	if p.Hidden {
		heading += ", with characters that are not seen: they are written by their numbers"
	}
	return heading
}
