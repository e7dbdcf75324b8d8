package attachment

import (
	"context"
	"net/http"
)

// Fetch gives the bytes behind an item, and what its server calls them, by the rules of Download, for who keeps them elsewhere than in a
// directory. PerCall of the limits is what the caller may still take; 0 is all of it. Errors are as those of Download.
func Fetch(ctx context.Context, client *http.Client, item SentinelItem, limits DownloadLimits) (data []byte, mime string, err error) {
	limits = limits.orUsual()
	d := newDownload(client, limits)
	return d.fetch(ctx, item.name(), item.URL)
}
