//go:build desktop && (!linux || bindings)

package app

import "context"

// clipboardPicture has nothing to do: WebView2 and WKWebView give the page what is pasted.
func clipboardPicture(context.Context) []byte { return nil }
