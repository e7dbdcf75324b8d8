//go:build desktop && !bindings

package app

import (
	"context"
	"net/url"
)

// showFile marks a file in the desktop's file browser. Many file browsers have no such call; then the file's directory is opened.
func showFile(path string) error {
	const name = "org.freedesktop.FileManager1"
	conn, err := sessionBus()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // the call was made
	ctx, end := context.WithTimeout(context.Background(), callTimeout)
	defer end()
	address := url.URL{Scheme: "file", Path: path}
	return conn.Object(name, "/org/freedesktop/FileManager1").CallWithContext(ctx, name+".ShowItems", 0, []string{address.String()}, "").Err
}
