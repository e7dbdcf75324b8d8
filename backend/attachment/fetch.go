package attachment

import (
	"context"
	"net/http"
)

// Fetch returns the bytes of an item and the server's Content-Type, by the rules of Download, for a caller that does not store them in a
// directory. limits.PerCall is the number of bytes that the caller still accepts; 0 is the default. Errors are those of Download.
func Fetch(ctx context.Context, client *http.Client, item SentinelItem, limits DownloadLimits) (data []byte, mime string, err error) {
	limits = limits.orUsual()
	d := newDownload(client, limits)
	return d.fetch(ctx, item.name(), item.URL)
}
