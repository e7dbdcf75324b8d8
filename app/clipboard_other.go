//go:build desktop && (!linux || bindings)

package app

import "context"

// clipboardPicture does nothing: WebView2 and WKWebView give pasted pictures to the page.
func clipboardPicture(context.Context) []byte { return nil }
