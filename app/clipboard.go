package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
)

// ingest stores bytes as an attachment by the client API, and returns the attachment's id. Code: the API's refusal.
func (a api) ingest(ctx context.Context, name, kind string, data []byte) (string, error) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {multipart.FileContentDisposition("file", name)}, "Content-Type": {kind},
	})
	if err != nil {
		return "", err
	}
	if _, err := part.Write(data); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/client/attachments", &form)
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", w.FormDataContentType())
	answer := &heard{header: http.Header{}}
	a.handler.ServeHTTP(answer, r)
	if answer.status >= http.StatusBadRequest {
		return "", refusal(answer.body.Bytes())
	}
	return taken(answer.body.Bytes())
}

// taken returns the id of the single file that the API accepted.
func taken(body []byte) (string, error) {
	var got struct {
		Items []struct {
			ID string `json:"id"`
		} `json:"items"`
		Problems []Error `json:"problems"`
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return "", fmt.Errorf("what was taken in: %w", err)
	}
	switch {
	case len(got.Problems) > 0:
		return "", &got.Problems[0]
	case len(got.Items) == 0:
		return "", errors.New("nothing was taken in")
	}
	return got.Items[0].ID, nil
}
