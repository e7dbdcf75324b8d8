package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"deskhand/backend/httpapi"
)

// TestPicturesOfThisMachineAreNotFetched is of the route; what is fetched is told in package pictures.
func TestPicturesOfThisMachineAreNotFetched(t *testing.T) {
	server := httptest.NewServer(httpapi.NewClient(httpapi.ClientConfig{}))
	defer server.Close()
	c := &clinic{t: t, client: server.Client(), url: server.URL}
	for address, want := range map[string]string{
		"": "picture.address", "http://example.com/a.png": "picture.address", "https://127.0.0.1/a.png": "picture.near", "https://localhost/a.png": "picture.near",
	} {
		c.refused("GET", "picture?address="+url.QueryEscape(address), "", http.StatusBadRequest, want)
	}
}
